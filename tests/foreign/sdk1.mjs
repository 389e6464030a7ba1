// @modelcontextprotocol/sdk 1.x: node sdk1.mjs URL FILE
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { basics, rejoined, report, resumed } from "./drive.mjs";

const [url, file] = process.argv.slice(2);

const sdk = {
  async connect({ fetch, headers }) {
    const client = new Client({ name: "sdk1", version: "1" });
    const options = { fetch, requestInit: { headers } };
    const transport = new StreamableHTTPClientTransport(new URL(url), options);
    await client.connect(transport);
    return { client, transport };
  },
  call: (client, params, options) => client.callTool(params, undefined, options),
};

const { client, transport } = await sdk.connect({});
const found = { version: transport.protocolVersion, ...(await basics(sdk, client)) };
await transport.terminateSession();
await client.close();
report({ ...found, resumed: await resumed(sdk), rejoined: await rejoined(sdk, file) });
