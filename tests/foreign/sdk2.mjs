// @modelcontextprotocol/client 2.x: node sdk2.mjs (legacy|auto) (URL FILE | COMMAND ARGUMENT...)
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { basics, rejoined, report, resumed } from "./drive.mjs";

const [mode, target, ...args] = process.argv.slice(2);
const overHttp = target.startsWith("http");

const sdk = {
  async connect({ fetch, headers }) {
    const client = new Client({ name: "sdk2", version: "1" }, { versionNegotiation: { mode } });
    const transport = overHttp
      ? new StreamableHTTPClientTransport(new URL(target), { fetch, requestInit: { headers } })
      : new StdioClientTransport({ command: target, args, env: process.env });
    await client.connect(transport);
    return { client, transport };
  },
  call: (client, params, options) => client.callTool(params, options),
};

const { client, transport } = await sdk.connect({});
const found = { version: client.getNegotiatedProtocolVersion(), ...(await basics(sdk, client)) };
if (overHttp && mode === "legacy") {
  await transport.terminateSession();
  found.resumed = await resumed(sdk);
  found.rejoined = await rejoined(sdk, args[0]);
}
await client.close();
report(found);
