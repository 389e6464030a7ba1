// A call longer than its client waits, without an option set: node patient.mjs (1|legacy|auto) URL SECONDS
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { report } from "./drive.mjs";

const [mode, url, seconds] = process.argv.slice(2);
const name = { name: `patient-${mode}`, version: "1" };
const client =
  mode === "1" ? new Client1(name) : new Client(name, { versionNegotiation: { mode } });
await client.connect(
  mode === "1" ? new Transport1(new URL(url)) : new StreamableHTTPClientTransport(new URL(url)),
);
const call = async (tool, args) =>
  (await client.callTool({ name: tool, arguments: args })).content.map((block) => block.text ?? "");

const slow = { server: "demo", tool: "slow", args: { seconds: Number(seconds), steps: 9 } };
const said = [await call("execute_tool", slow)];
const task = /"task_id": ?"([^"]+)"/.exec(said[0].join("\n"))[1];
while (!said.at(-1)[0].startsWith("done")) {
  said.push(await call("get_task_result", { task_id: task }));
}
await client.close();
report({ said: said.map((texts) => texts[0]) });
