// Plays scenarios with the official TypeScript clients: jobs as JSON on stdin, transcripts as JSON on stdout.
//
//   {"sdk": "1" | "2", "jobs": [{"server": {"url"} | {"command", "args", "env", "cwd"},
//                                "era": "legacy" | "modern", "name": "...", "steps": [...],
//                                "elicit"?: "accept" | "decline"}]}
//
// With `elicit`, the client can ask its user, who answers every question like this; the questions are in
// `asked` of the transcript.
// A step is {"do": "list", "meta"?}, {"do": "call", "name", "arguments", "meta"?} or
// {"do": "request", "method", "params"}; its answer is {"result"} or {"error"} or {"thrown"}, with the
// notifications that arrived before it. A job's own trouble is {"failed": text}.
import { text } from "node:stream/consumers";

const ANYTHING = { "~standard": { version: 1, vendor: "pegboard-tests", validate: (value) => ({ value }) } };

async function sdk1() {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const { ElicitRequestSchema, ToolListChangedNotificationSchema } = await import(
    "@modelcontextprotocol/sdk/types.js"
  );
  const { z } = await import("zod");
  return {
    connect: (job) => new Client({ name: job.name, version: "1.0.0" }, abilities(job)),
    onQuestion: (client, answer) => client.setRequestHandler(ElicitRequestSchema, answer),
    transport: (server) => makeTransport(server, StreamableHTTPClientTransport, StdioClientTransport),
    anything: z.looseObject({}),
    follow: (client, seen) =>
      client.setNotificationHandler(ToolListChangedNotificationSchema, (n) => void seen.push(n.method)),
    version: (client, transport) => transport.protocolVersion ?? null,
  };
}

async function sdk2() {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  return {
    connect: (job) =>
      new Client(
        { name: job.name, version: "1.0.0" },
        {
          ...abilities(job),
          versionNegotiation: { mode: job.era === "modern" ? { pin: "2026-07-28" } : "legacy" },
        },
      ),
    onQuestion: (client, answer) => client.setRequestHandler("elicitation/create", answer),
    transport: (server) => makeTransport(server, StreamableHTTPClientTransport, StdioClientTransport),
    anything: ANYTHING,
    follow: (client, seen) =>
      client.setNotificationHandler("notifications/tools/list_changed", (n) => void seen.push(n.method)),
    version: (client) => client.getNegotiatedProtocolVersion?.() ?? null,
  };
}

function abilities(job) {
  return job.elicit ? { capabilities: { elicitation: {} } } : {};
}

function makeTransport(server, Http, Stdio) {
  return server.url ? new Http(new URL(server.url)) : new Stdio({ ...server, stderr: "inherit" });
}

function send(client, step, anything) {
  const meta = step.meta ? { _meta: step.meta } : {};
  switch (step.do) {
    case "list":
      // A client may answer from its own cache; a list that is asked for with `meta` is a new one.
      return client.listTools(meta, step.meta ? { cacheMode: "refresh" } : undefined);
    case "call":
      return client.callTool({ name: step.name, arguments: step.arguments, ...meta });
    case "request":
      return client.request({ method: step.method, params: step.params }, anything);
    default:
      throw new Error(`unknown step ${step.do}`);
  }
}

async function answered(client, step, anything, seen) {
  seen.length = 0;
  let answer;
  try {
    answer = { result: await send(client, step, anything) };
  } catch (error) {
    const isRpc = typeof error.code === "number";
    answer = isRpc
      ? { error: { code: error.code, message: error.message, data: error.data ?? null } }
      : { thrown: String(error) };
  }
  return { ...answer, notifications: [...seen] };
}

async function play(kit, job) {
  const client = kit.connect(job);
  const transport = kit.transport(job.server);
  const seen = [];
  const asked = [];
  try {
    if (job.elicit) {
      kit.onQuestion(client, async (request) => {
        asked.push(request.params.message);
        return job.elicit === "accept" ? { action: "accept", content: {} } : { action: job.elicit };
      });
    }
    await client.connect(transport);
    kit.follow(client, seen);
    const answers = [];
    for (const step of job.steps) {
      answers.push(await answered(client, step, kit.anything, seen));
    }
    const info = {
      protocolVersion: kit.version(client, transport),
      capabilities: client.getServerCapabilities() ?? null,
      serverInfo: client.getServerVersion() ?? null,
      instructions: client.getInstructions() ?? null,
    };
    return { info, answers, asked };
  } catch (error) {
    return { failed: String(error.stack ?? error) };
  } finally {
    await client.close();
  }
}

const { sdk, jobs } = JSON.parse(await text(process.stdin));
const kit = sdk === "1" ? await sdk1() : await sdk2();
const transcripts = [];
for (const job of jobs) {
  transcripts.push(await play(kit, job));
}
process.stdout.write(JSON.stringify(transcripts), () => process.exit(0));
