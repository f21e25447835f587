// The real binary, as somebody starts it: in a home of its own, with a config, on a free port.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "@playwright/test";

const fixtures = wanted("FIXTURES");
const binary = wanted("CONSORT");
const here = import.meta.dirname;

export const node = join(fixtures, "npm/node_modules/.bin/node");

/** How a server is started. */
export type Command = [program: string, ...words: string[]];

export const everything: Command = [node, join(fixtures, "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "stdio"];
export const memory: Command = [node, join(fixtures, "npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js")];
export const fastmcp: Command = [join(fixtures, "python/bin/python3"), join(here, "../../crates/testkit/fixtures/fastmcp_server.py")];
export const filesystem = (folder: string): Command => [node, join(fixtures, "npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"), folder];
/** One of our own, for faults. */
export const own = (name: string, ...words: string[]): Command => [node, join(here, "servers", `${name}.mjs`), ...words];

export interface Setting {
  /** The servers by name; `{HOME}` in words is the home. */
  servers?: Record<string, Command>;
  /** What else the config says, as TOML. */
  config?: string;
  /** Files at home, by name. */
  files?: Record<string, string>;
  /** Further words of the command line. */
  words?: string[];
  /** What is run in the home before it serves, for example `["lock", "--yes"]`. */
  before?: string[][];
}

/** A gateway that serves. */
export class Gateway {
  /** The folder it lives in; made at the first start. */
  home = "";
  /** Where it serves, without a path. */
  origin = "";
  token = "";
  #child?: ChildProcess;
  #logged = "";
  readonly #setting: Setting;

  constructor(setting: Setting) {
    this.#setting = setting;
  }

  #settle({ servers = {}, config = "", files = {}, before = [] }: Setting): void {
    this.home = mkdtempSync(join(tmpdir(), "consort-console-"));
    const tables = Object.entries(servers).map(
      ([name, command]) => `[mcp.${name}]\ncommand = ${JSON.stringify(command.map((word) => word.replaceAll("{HOME}", this.home)))}\n`,
    );
    this.write("consort.toml", `${tables.join("\n")}\n${config}`);
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    for (const words of before) this.run(...words);
  }

  /** Starts it, on the port it had before if it had one. */
  async start(): Promise<void> {
    if (!this.home) this.#settle(this.#setting);
    const address = this.origin ? new URL(this.origin).host : "127.0.0.1:0";
    const words = ["--config", "consort.toml", "serve", "--listen", address, "--json", ...(this.#setting.words ?? [])];
    const child = spawn(binary, words, { cwd: this.home, env: this.#environment(), stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    child.stderr!.on("data", (bytes) => (this.#logged += bytes));
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout! }).once("line", resolve);
      child.once("exit", (code) => reject(new Error(`consort ended with ${code}: ${this.#logged}`)));
      child.once("error", reject);
    });
    const said = JSON.parse(line) as { endpoint: string; token_file?: string };
    this.origin = new URL(said.endpoint).origin;
    this.token = said.token_file ? readFileSync(said.token_file, "utf8").trim() : "";
  }

  /** Waits until no server is on its way any more. */
  async settled(): Promise<void> {
    const under_way = ["configured", "known", "connecting"];
    for (;;) {
      const servers = await this.api<{ state: string; error?: string }[]>("/servers");
      if (!servers.some(({ state, error }) => under_way.includes(state) && !error)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    rmSync(this.home, { recursive: true, force: true });
    // A worker may run several groups of a file: started again, the gateway gets a new home folder.
    this.home = "";
    this.origin = "";
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    // Requests in progress are given time when it ends; nobody waits for them here.
    const impatient = setTimeout(() => child.kill("SIGKILL"), 3_000);
    await ended;
    clearTimeout(impatient);
  }

  /** The address of a page of the console. */
  page(path = ""): string {
    return `${this.origin}/console/${path}`;
  }

  /** What it logged. */
  get logged(): string {
    return this.#logged;
  }

  path(name: string): string {
    return join(this.home, name);
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text);
  }

  read(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }

  /** Runs a command of the same binary in the same home. */
  run(...words: string[]): string {
    return execFileSync(binary, ["--config", "consort.toml", ...words], { cwd: this.home, env: this.#environment(), encoding: "utf8" });
  }

  /** Asks the API as the console does, with the token; fails unless it is answered well. */
  async api<T>(path: string, body?: unknown): Promise<T> {
    const answer = await fetch(`${this.origin}/api${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  #environment(): NodeJS.ProcessEnv {
    const { PATH, LANG } = process.env;
    return { PATH, LANG, HOME: this.home, NO_PROXY: "127.0.0.1" };
  }
}

/** A gateway for the tests of a file. */
export function serving(setting: Setting): Gateway {
  const gateway = new Gateway(setting);
  test.beforeAll(async () => {
    await gateway.start();
    await gateway.settled();
  });
  test.afterAll(() => gateway.stop());
  return gateway;
}

function wanted(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run these by scripts/console`);
  return value;
}
