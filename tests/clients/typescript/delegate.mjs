// Delegates to a sub-agent with the official TypeScript SDK, over standard input and output and over HTTP.
//
// usage: node delegate.mjs BINARY   (the environment must keep the state folder apart: ATTACHE_HOME)

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// The SDK lies where it was installed, which is not beside this file.
const sdk = (file) =>
  import(pathToFileURL(join(process.cwd(), "node_modules/@modelcontextprotocol/sdk/dist/esm", file)));
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const { ResourceUpdatedNotificationSchema } = await sdk("types.js");

const SAID = "The child has read its task.";
const binary = process.argv[2];
const script = resolve(dirname(new URL(import.meta.url).pathname), "../script.yaml");
const model = `scripted/${script}`;

/** Creates a sub-agent, follows it, waits for it, reads what it said, and acknowledges the notice of its end. */
async function delegate(transport, how) {
  const client = new Client({ name: "walk", version: "1" });
  const updated = new Set();
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updated.add(params.uri));
  await client.connect(transport);
  assert.equal((await client.listTools()).tools.length, 9);
  const call = async (name, args, options) => {
    const result = await client.callTool({ name, arguments: args }, undefined, options);
    assert.ok(!result.isError, JSON.stringify(result));
    return result.structuredContent;
  };
  const made = await call("agent_session_create", {});
  const { session_id, root_session_id } = made;
  await client.subscribeResource({ uri: `attache://session/${session_id}` });
  await call("agent_session_send", { session_id, text: "Read your task." });
  await call("agent_session_on_complete", { session_id });
  let progress = 0;
  const waited = await call(
    "agent_session_wait",
    { session_id, wait_for_idle: true },
    { onprogress: () => (progress += 1), resetTimeoutOnProgress: true },
  );
  assert.equal(waited.result_preview, SAID);
  const read = await call("agent_session_read_events", { session_id, event_types: ["assistant"] });
  assert.equal(read.events[0].content_preview, SAID);
  const listed = await call("agent_session_list", { root_session_id });
  assert.equal(listed.sessions.at(-1).session_id, session_id);
  const acknowledge = listed.notices.map((notice) => notice.id);
  assert.deepEqual((await call("agent_session_list", { acknowledge })).notices, []);
  const { resources } = await client.listResources();
  assert.ok(resources.some(({ uri }) => uri === `attache://session/${session_id}`));
  const { contents } = await client.readResource({ uri: `attache://session/${session_id}` });
  assert.ok(contents[0].text.includes(SAID));
  assert.ok(updated.has(`attache://session/${session_id}`), "it was told of the change");
  const refused = await client.callTool({ name: "agent_session_get", arguments: { session_id: "nothing" } });
  assert.equal(refused.isError, true);
  assert.equal(refused.structuredContent.error.code, "unknown-session");
  await client.close();
  console.log(`typescript: ${how}: ok`);
}

await delegate(
  new StdioClientTransport({ command: binary, args: ["mcp", "--model", model], env: { ...process.env } }),
  "stdio",
);

const home = `${process.env.ATTACHE_HOME}-node-http`;
const daemon = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"], {
  env: { ...process.env, ATTACHE_MODEL: model, ATTACHE_HOME: home },
  stdio: ["ignore", "ignore", "pipe"],
});
try {
  const lines = createInterface({ input: daemon.stderr });
  const [line] = await new Promise((done) => lines.once("line", (line) => done([line])));
  const url = new URL(line.split(" ")[2].replace(/;$/, ""));
  const token = readFileSync(join(home, "mcp-token"), "utf8").trim();
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await delegate(new StreamableHTTPClientTransport(url, { requestInit }), "http");
} finally {
  daemon.kill("SIGTERM");
}
