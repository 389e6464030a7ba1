// What a client of any SDK does with us over HTTP; the report is for the test to judge.
//
// An `sdk` has connect({fetch, headers}) -> {client, transport} and call(client, params, options).

import { writeFileSync } from "node:fs";

const call = (tool, args) => ({ name: tool, arguments: args });
const demo = (tool, args, more) => call("execute_tool", { server: "demo", tool, args, ...more });
const text = (result) => result.content[0].text;

/** A fetch; the first event stream that answers a call breaks once it has told of progress. */
function breaking(state) {
  return async (url, init) => {
    const headers = new Headers(init?.headers);
    if (init?.method === "GET" && headers.has("last-event-id")) state.resumed += 1;
    const response = await fetch(url, init);
    const kind = response.headers.get("content-type") ?? "";
    const calls = init?.method === "POST" && init.body.includes('"tools/call"');
    if (!calls || !kind.startsWith("text/event-stream") || state.broken) return response;
    let progressed = false;
    const body = response.body.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          if (progressed) {
            state.broken = true;
            controller.error(new Error("the connection is gone"));
            return;
          }
          controller.enqueue(chunk);
          progressed = new TextDecoder().decode(chunk).includes("notifications/progress");
        },
      }),
    );
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

async function slow(sdk, client, args, more = {}) {
  const progress = [];
  const onprogress = (said) => progress.push(said.progress);
  const result = await sdk.call(client, demo("slow", args), { onprogress, ...more });
  return { progress, text: text(result) };
}

export async function basics(sdk, client) {
  const { tools } = await client.listTools();
  return {
    server: client.getServerVersion().name,
    tools: tools.map((tool) => tool.name),
    echo: text(await sdk.call(client, demo("echo", { text: "grüße 🦑" }))),
    slow: await slow(sdk, client, { seconds: 1, steps: 5 }),
  };
}

/** The connection breaks in the middle of a call, and the SDK resumes its stream. */
export async function resumed(sdk) {
  const state = { broken: false, resumed: 0 };
  const { client, transport } = await sdk.connect({ fetch: breaking(state) });
  const tokens = [];
  const onresumptiontoken = (token) => tokens.push(token);
  const found = await slow(sdk, client, { seconds: 2, steps: 20 }, { onresumptiontoken });
  await transport.terminateSession();
  await client.close();
  return { ...found, ...state, tokens };
}

/** The client goes away in the middle of a call; its successor joins the session again. */
export async function rejoined(sdk, file) {
  const first = await sdk.connect({});
  const session = first.transport.sessionId;
  await new Promise((begun) => {
    const waiting = call("execute_tool", { server: "raw", tool: "slow", args: { file } });
    sdk.call(first.client, waiting, { onresumptiontoken: begun }).catch(() => {});
  });
  await first.client.close();
  const { client, transport } = await sdk.connect({
    headers: { "x-mcp-reconnect-session": session },
  });
  const { tasks } = JSON.parse(text(await sdk.call(client, call("list_tasks", {}))));
  writeFileSync(file, "");
  const result = await sdk.call(client, call("get_task_result", { task_id: tasks[0].task_id }));
  const same = transport.sessionId === session;
  await transport.terminateSession();
  await client.close();
  return { same, tasks: tasks.map(({ server, tool }) => [server, tool]), text: text(result) };
}

export function report(value) {
  process.stdout.write(JSON.stringify(value));
}
