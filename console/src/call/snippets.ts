// A call in other words: for a shell, for curl, for Rust. Pure.
import { isObject, own } from "../schema/model";
import type { ToolDetail } from "../types";
import { type View, writeView } from "../view";

/** One word of a POSIX shell. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export function asCommand(tool: ToolDetail, given: Record<string, unknown>, view: View = {}): string {
  const parts = Object.entries(given);
  const words = ["consort", "call", shellWord(tool.id)];
  if (view.profile !== undefined) words.push("--profile", shellWord(view.profile));
  if (view.exposure !== undefined && view.exposure !== "config") words.push("--exposure", shellWord(view.exposure));
  // A name that reads as something else, or a value that does, is better in one JSON object.
  const simple = parts.every(([name, value]) => /^[A-Za-z_][\w-]*$/.test(name) && (typeof value !== "string" || value.length < 2000));
  if (!simple) return [...words, "--args", shellWord(JSON.stringify(given))].join(" ");
  const types = own(tool.input_schema, "properties");
  for (const [name, value] of parts) {
    const plain = typeof value === "string" && own(own(types, name), "type") === "string";
    words.push(shellWord(plain ? `${name}=${value}` : `${name}:=${JSON.stringify(value)}`));
  }
  return words.join(" ");
}

const REVISION = "2026-07-28";

/** One stateless request; TOKEN stands for the gateway's token. */
export function asCurl(tool: ToolDetail, given: Record<string, unknown>, endpoint: string, wantsToken: boolean, view: View = {}): string {
  // An exposure that is not the config's has no MCP endpoint of its own; the admin API calls by any.
  if (view.exposure !== undefined && view.exposure !== "config") return asApiCurl(tool, given, endpoint, wantsToken, view);
  // A server's own address knows nothing of transforms; what they changed is called where everything is.
  const seen = view.profile !== undefined ? `${endpoint}/${encodeURIComponent(view.profile)}` : endpoint;
  const [address, name] = tool.changed || writeView(view) ? [seen, tool.name] : [new URL(`/servers/${encodeURIComponent(tool.server)}/mcp`, endpoint).href, tool.server_name];
  const body = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name,
      arguments: given,
      _meta: { "io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {} },
    },
  };
  const headers = [
    ...(wantsToken ? ["Authorization: Bearer TOKEN"] : []),
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    `MCP-Protocol-Version: ${REVISION}`,
    "Mcp-Method: tools/call",
    `Mcp-Name: ${headerValue(name)}`,
    ...mirrored(tool, given),
  ];
  return [
    `curl -sS ${shellWord(address)}`,
    ...headers.map((header) => `-H ${shellWord(header)}`),
    `-d ${shellWord(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}

function asApiCurl(tool: ToolDetail, given: Record<string, unknown>, endpoint: string, wantsToken: boolean, view: View): string {
  const headers = [...(wantsToken ? ["Authorization: Bearer TOKEN"] : []), "Content-Type: application/json"];
  return [
    `curl -sSN ${shellWord(new URL("/api/calls", endpoint).href)}`,
    ...headers.map((header) => `-H ${shellWord(header)}`),
    `-d ${shellWord(JSON.stringify({ tool: tool.id, ...view, arguments: given }))}`,
  ].join(" \\\n  ");
}

/** Arguments that a schema wants in headers too (`x-mcp-header`). */
function mirrored(tool: ToolDetail, given: Record<string, unknown>): string[] {
  const properties = own(tool.input_schema, "properties");
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([name, schema]) => {
    const header = own(schema, "x-mcp-header");
    const value = own(given, name);
    if (typeof header !== "string" || value === undefined || typeof value === "object") return [];
    return [`Mcp-Param-${header}: ${headerValue(String(value))}`];
  });
}

/** As MCP writes what a header cannot hold. */
function headerValue(text: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

export function asRust(tool: ToolDetail, given: Record<string, unknown>): string {
  const text = JSON.stringify(given, null, 4).replaceAll("\n", "\n        ");
  let marks = "#";
  while (text.includes(`"${marks}`)) marks += "#";
  return `use consort::config::{Config, System};
use consort::{Caller, Hub, Invocation, Settings, Toolbox, end};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::path::Path::new("consort.toml");
    let config = Config::parse(file, &std::fs::read_to_string(file)?)?;
    let servers: Result<Vec<_>, _> =
        config.servers.iter().map(|server| server.to_settings(&System::silent())).collect();
    let hub = Hub::start(Settings { servers: servers?, ..Settings::default() });
    hub.settled().await;

    let arguments: serde_json::Value = serde_json::from_str(
        r${marks}"${text}"${marks},
    )?;
    let invocation = Invocation::new(Caller::person("me"), ${rustText(tool.id)}, arguments.into());
    println!("{:?}", end(hub.call(invocation)).await?);
    hub.drain().await;
    Ok(())
}
`;
}

function rustText(text: string): string {
  return `"${[...text].map((each) => (/[\x20-\x7e]/.test(each) && each !== '"' && each !== "\\" ? each : `\\u{${each.codePointAt(0)!.toString(16)}}`)).join("")}"`;
}
