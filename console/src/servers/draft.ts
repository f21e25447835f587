// A server typed into the form, as the mcp.json that says the same.

export interface Pair { name: string; value: string }

export interface Typed {
  name: string;
  kind: "program" | "url";
  program: string;
  /** One argument a line. */
  args: string;
  url: string;
  folder: string;
  variables: Pair[];
  headers: Pair[];
}

export const BLANK: Typed = { name: "", kind: "program", program: "", args: "", url: "", folder: "", variables: [], headers: [] };

/** Nothing until there is a name and a program or URL. An argument is its line as it stands, spaces included. */
export function written(typed: Typed): string | undefined {
  const name = typed.name.trim();
  const entry: Record<string, unknown> = {};
  if (typed.kind === "program") {
    if (!typed.program.trim()) return undefined;
    entry.command = typed.program.trim();
    const args = typed.args.split("\n").filter((line) => line !== "");
    if (args.length) entry.args = args;
    if (typed.folder.trim()) entry.cwd = typed.folder.trim();
    const env = table(typed.variables);
    if (env) entry.env = env;
  } else {
    if (!typed.url.trim()) return undefined;
    entry.url = typed.url.trim();
    const headers = table(typed.headers);
    if (headers) entry.headers = headers;
  }
  if (!name) return undefined;
  return JSON.stringify({ mcpServers: { [name]: entry } }, null, 2);
}

function table(pairs: Pair[]): Record<string, string> | undefined {
  const set = pairs.filter((pair) => pair.name.trim());
  return set.length ? Object.fromEntries(set.map((pair) => [pair.name.trim(), pair.value])) : undefined;
}
