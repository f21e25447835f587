// A server on standard input and output, of the legacy era, with just enough of MCP for the faults that the tests need.
import { createInterface } from "node:readline";

/** Says something to the client that no request asked for. */
export function notify(method, params = {}) {
  write({ jsonrpc: "2.0", method, params });
}

const waiting = new Map();
let asked = 0;

/** Asks the client, and waits for the answer. */
export function ask(method, params) {
  const id = `ask-${++asked}`;
  write({ jsonrpc: "2.0", id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

/**
 * Serves until standard input ends.
 * `methods` answer requests: each gets the params and an AbortSignal that the client's `notifications/cancelled` fires.
 */
export function serve({ name, title, instructions, capabilities, methods, pageSize = 1000 }) {
  const running = new Map();
  const answers = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion: protocolVersion === "2026-07-28" ? "2025-11-25" : protocolVersion,
      capabilities,
      serverInfo: { name, title, version: "1.0.0" },
      instructions,
    }),
    ping: () => ({}),
    "logging/setLevel": () => ({}),
    ...methods,
  };
  const dispatch = async ({ id, method, params = {} }) => {
    const answer = answers[method];
    if (!answer) return write({ jsonrpc: "2.0", id, error: { code: -32601, message: `no method ${method}` } });
    const abort = new AbortController();
    running.set(id, abort);
    try {
      const result = page(await answer(params, abort.signal), params.cursor, pageSize);
      if (!abort.signal.aborted) write({ jsonrpc: "2.0", id, result });
    } catch (error) {
      write({ jsonrpc: "2.0", id, error: { code: error.code ?? -32603, message: error.message } });
    } finally {
      running.delete(id);
    }
  };
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      if (!line.trim()) return;
      const message = JSON.parse(line);
      if (message.method === "notifications/cancelled") running.get(message.params.requestId)?.abort();
      else if (message.method && message.id !== undefined) void dispatch(message);
      else if (!message.method) {
        waiting.get(message.id)?.(message.result ?? { action: "cancel" });
        waiting.delete(message.id);
      }
    })
    .on("close", () => process.exit(0));
}

/** The page of a list of tools that the cursor is for; anything else as it is. */
function page(result, cursor, size) {
  if (!result.tools || result.tools.length <= size) return result;
  const from = Number(cursor ?? 0);
  const next = from + size < result.tools.length ? { nextCursor: String(from + size) } : {};
  return { ...result, tools: result.tools.slice(from, from + size), ...next };
}

function write(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
