// The admin API: JSON in and out, errors as `Refused`, event streams over fetch.
import { PREFIX } from "./base";
import { isCurrent, sessionHeader } from "./page-secret";
import type { ErrorBody } from "./types";

/** What the gateway would not do, and what to do about it. Status 0: it could not be reached. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly error: string, readonly hint?: string, readonly link?: string) {
    super(error);
  }
}

/** Told of every 401, so that the login is shown. */
let signedOut: (error: ApiError) => void = () => {};
export function onSignedOut(tell: (error: ApiError) => void) {
  signedOut = tell;
}

async function refusal(response: Response): Promise<ApiError> {
  let said: Partial<ErrorBody> = {};
  try {
    said = (await response.json()) as ErrorBody;
  } catch {
    // not ours: a proxy, or an older gateway
  }
  return new ApiError(response.status, said.error ?? `the gateway returned HTTP ${response.status}`, said.hint, said.link);
}

async function request(method: string, path: string, body?: unknown, signal?: AbortSignal, more: Record<string, string> = {}) {
  const headers: Record<string, string> = { Accept: "application/json", ...sessionHeader(), ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(`${PREFIX}/api${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "cannot connect to the gateway", "is `consort serve` still running?");
  }
  if (response.ok) return response;
  const refused = await refusal(response);
  if (refused.status === 401 && isCurrent(headers) && !(method === "POST" && path === "/session")) signedOut(refused);
  throw refused;
}

async function json<T>(response: Response): Promise<T> {
  if (response.status === 204 || response.status === 202) return undefined as T;
  return (await response.json()) as T;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return json<T>(await request("GET", path, undefined, signal));
}

export async function post<T = void>(path: string, body: unknown = {}, signal?: AbortSignal, headers?: Record<string, string>): Promise<T> {
  return json<T>(await request("POST", path, body, signal, headers));
}

export async function del(path: string): Promise<void> {
  await request("DELETE", path);
}

/** `?a=1&b=2` from what is set; empty without. */
export function query(values: Record<string, string | number | undefined>): string {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  return set.length ? `?${new URLSearchParams(set.map(([key, value]) => [key, String(value)]))}` : "";
}

export type On = (event: string, data: any) => void;

/** Reads an event stream to its end; with a body it is a POST. Aborting the signal leaves it, which cancels what it was for. */
export async function stream(path: string, body: unknown | undefined, on: On, signal?: AbortSignal): Promise<void> {
  const response = await request(body === undefined ? "GET" : "POST", path, body, signal, { Accept: "text/event-stream" });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const feed = events(on);
  for (;;) {
    let part: ReadableStreamReadResult<string>;
    try {
      part = await reader.read();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "the connection to the gateway was lost");
    }
    if (part.done) return;
    feed(part.value);
  }
}

/** A parser of text/event-stream that takes it in pieces of any size. */
export function events(on: On): (piece: string) => void {
  let rest = "";
  let name = "";
  let data: string[] = [];
  return (piece) => {
    // Only whole lines are looked at; a large event in small pieces must not be scanned again each time.
    if (!piece.includes("\n")) {
      rest += piece;
      return;
    }
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (data.length) on(name || "message", JSON.parse(data.join("\n")));
        name = "";
        data = [];
      } else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line.startsWith("event:")) name = line.slice(6).trim();
    }
  };
}
