// The idea of `pegboard.LazyTools` in TypeScript: find a tool, fetch its definition once, call it.
//
//   node examples/lazy_client.mjs http://127.0.0.1:8000/mcp "which milestones are running late" list_projects
//
// It needs `@modelcontextprotocol/client`. Types are in comments, so that Node runs it as it is.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const EXTENSION = "io.github.pegboard/lazy-tools";
const ANYTHING = { "~standard": { version: 1, vendor: "example", validate: (value) => ({ value }) } };

export class LazyTools {
  /** @param {Client} client a connected client */
  constructor(client) {
    this.client = client;
    /** @type {Map<string, {name: string, description?: string, inputSchema: object}>} */
    this.definitions = new Map();
  }

  /** Whether the server can describe single tools; otherwise use its list as it is. */
  get isLazy() {
    const offered = this.client.getServerCapabilities() ?? {};
    return EXTENSION in { ...offered.extensions, ...offered.experimental };
  }

  /** Names of tools that fit a task, best first.
   * @param {string} task @param {number} limit @returns {Promise<string[]>} */
  async find(task, limit = 5) {
    const found = await this.client.callTool({
      name: "search_tools",
      arguments: { query: task, limit },
      _meta: { "io.github.pegboard/structured": true },
    });
    return found.structuredContent.matches.map((match) => match.name);
  }

  /** The definition of a tool, fetched unless it is known.
   * @param {string} name */
  async describe(name) {
    if (!this.definitions.has(name)) {
      const request = { method: "tools/describe", params: { names: [name] } };
      const answer = await this.client.request(request, ANYTHING);
      for (const tool of answer.tools) this.definitions.set(tool.name, tool);
    }
    return this.definitions.get(name);
  }

  /** Call a tool; throws with the server's message if that fails.
   * @param {string} name @param {Record<string, unknown>} args */
  async call(name, args = {}) {
    await this.describe(name);
    const result = await this.client.callTool({ name, arguments: args });
    const text = result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
    if (result.isError) throw new Error(text);
    return result.structuredContent ?? text;
  }
}

const [url, task, name] = process.argv.slice(2);
const client = new Client(
  { name: "lazy-client", version: "1.0.0" },
  { versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const tools = new LazyTools(client);
if (!tools.isLazy) throw new Error("This server does not describe single tools.");
console.log("found:", (await tools.find(task, 3)).join(", "));
console.log(`${name} ->`, JSON.stringify(await tools.call(name)).slice(0, 200));
console.log(`${tools.definitions.size} definition was fetched`);
await client.close();
