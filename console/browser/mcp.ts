// A real MCP client: that of the official SDK, through the gateway.
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Gateway } from "./gateway";

const require = createRequire(join(process.env.FIXTURES!, "npm/package.json"));

export interface Told {
  content: { type: string; text?: string }[];
  isError?: boolean;
}

export interface Client {
  callTool(params: { name: string; arguments?: unknown }, schema?: undefined, options?: { timeout?: number; signal?: AbortSignal; onprogress?: (progress: unknown) => void }): Promise<Told>;
  listTools(): Promise<{ tools: { name: string }[] }>;
  close(): Promise<void>;
}

/** Connects as a client that cannot be asked anything. */
export async function connect(gateway: Gateway, path = "/mcp"): Promise<Client> {
  const { Client: Sdk } = require("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const transport = new StreamableHTTPClientTransport(new URL(gateway.origin + path), {
    requestInit: { headers: { authorization: `Bearer ${gateway.token}` } },
  });
  const client = new Sdk({ name: "desk", version: "1.0.0" });
  await client.connect(transport);
  return client as Client;
}

/** The texts of a result. */
export function texts(told: Told): string {
  return told.content.map((part) => part.text ?? "").join("\n");
}
