// What a client of the TypeScript SDK says and hears: node tape.mjs (legacy|auto) STEPS (URL | COMMAND ARGUMENT...)
//
// STEPS is a list of [method of the client, params], done one after the other. The report is every
// message, in order: whether it came or went, and what it was.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { report } from "./drive.mjs";

const [mode, steps, target, ...args] = process.argv.slice(2);
const tape = [];

function taped(transport) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    tape.push(["->", message]);
    return send(message, options);
  };
  let hears;
  Object.defineProperty(transport, "onmessage", {
    get: () => hears,
    set: (listener) => {
      hears = (message, extra) => {
        tape.push(["<-", message]);
        listener(message, extra);
      };
    },
  });
  return transport;
}

const capabilities = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const client = new Client(
  { name: "taped", version: "1" },
  { capabilities, versionNegotiation: { mode } },
);
client.setRequestHandler("elicitation/create", () => ({ action: "decline" }));
client.setRequestHandler("sampling/createMessage", () => ({
  role: "assistant",
  content: { type: "text", text: "that" },
  model: "m",
}));
client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///mine", name: "Mine" }] }));

const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, env: process.env, stderr: "ignore" });
await client.connect(taped(transport));
const options = { onprogress: () => {}, timeout: 60_000 };
for (const [method, params] of JSON.parse(steps)) {
  await client[method](params, options).catch(() => {}); // it is on the tape
}
if (transport.terminateSession) await transport.terminateSession();
await client.close();
report({ tape });
