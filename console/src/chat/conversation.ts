// A conversation as it is shown: what was said before, and what the events of the run that is on add to it.
import { same } from "../schema/validate";
import type { ConversationSummary, ConversationDetail, MessageRow, MessagePart, RunReport, RunEvents } from "../types";

export interface Log { level?: string; data: unknown }

export interface CallView {
  id: string;
  name: string;
  /** `server.tool`, once it is known. */
  tool?: string;
  arguments: unknown;
  state: "queued" | "running" | "done" | "failed" | "no result";
  progress?: { progress: number; total?: number; message?: string };
  logs: Log[];
  result?: MessagePart[];
  error?: string;
  duration_ms?: number;
}

export type ConversationItem =
  /** `at`: so many messages a fork from here takes over; unknown while a run is on. */
  | { kind: "message"; message: MessageRow; calls: CallView[]; at?: number }
  | { kind: "note"; text: string }
  | { kind: "retry"; error: string; after_ms: number };

export interface StreamingAnswer { thinking: string; text: string; refusal: string }

export interface ConversationView {
  items: ConversationItem[];
  streaming?: StreamingAnswer;
  running: boolean;
  /** How often the model was asked in this run. */
  turn: number;
  model?: string;
  report?: RunReport;
}

export const NOTHING: ConversationView = { items: [], running: false, turn: 0 };

/** How many log lines of a call are kept. */
const LOGS = 200;

function callViews(message: MessageRow, state: CallView["state"]): CallView[] {
  return message.parts.flatMap((part) => (part.type === "call" ? [{ id: part.id, name: part.name, arguments: part.arguments, state, logs: [] }] : []));
}

/** What is kept of a conversation. Results stand with their calls. */
export function fromDetail(detail: Pick<ConversationDetail, "entries" | "running" | "report">): ConversationView {
  let items: ConversationItem[] = [];
  detail.entries.forEach((message, index) => {
    if (message.role === "tool") {
      for (const part of message.parts) {
        if (part.type === "result") items = withCall(items, part.call, (call) => ({ ...call, state: part.is_error ? "failed" : "done", result: part.parts }));
      }
      // A fork must not part a call from its result.
      const last = items.at(-1);
      if (last?.kind === "message") items = items.with(-1, { ...last, at: index + 1 });
    } else {
      items = [...items, { kind: "message", message, calls: callViews(message, "no result"), at: index + 1 }];
    }
  });
  return { items, running: detail.running, turn: 0, report: detail.report };
}

/** Changes the last call of this id; earlier turns may have used the same. */
function withCall(items: ConversationItem[], id: string, change: (call: CallView) => CallView): ConversationItem[] {
  for (let at = items.length - 1; at >= 0; at--) {
    const item = items[at]!;
    if (item.kind !== "message") continue;
    const index = item.calls.findIndex((call) => call.id === id);
    if (index >= 0) return items.with(at, { ...item, calls: item.calls.with(index, change(item.calls[index]!)) });
  }
  return items;
}

type Events = { [Name in keyof RunEvents]: { name: Name; data: RunEvents[Name] } }[keyof RunEvents];

/** One event further. Names that are not known change nothing. */
export function step(talk: ConversationView, name: string, data: unknown): ConversationView {
  const event = { name, data } as Events;
  switch (event.name) {
    case "started":
      return { ...talk, running: true, model: event.data.model, report: undefined };
    case "turn":
      return { ...talk, turn: event.data.turn, streaming: { thinking: "", text: "", refusal: "" } };
    case "delta": {
      const { data } = event;
      if (data.type === "other") return talk;
      const before = talk.streaming ?? { thinking: "", text: "", refusal: "" };
      return { ...talk, streaming: { ...before, [data.type]: before[data.type] + data.text } };
    }
    case "retry":
      // What came of the answer so far is worth nothing; it begins anew.
      return { ...talk, streaming: { thinking: "", text: "", refusal: "" }, items: [...talk.items, { kind: "retry", ...event.data }] };
    case "message":
      return { ...talk, streaming: undefined, items: [...talk.items, { kind: "message", message: event.data.message, calls: callViews(event.data.message, "queued") }] };
    case "call": {
      const { call: id, name, tool } = event.data;
      // The arguments are those that were sent: a person may have changed them.
      const began = (call: CallView): CallView => ({ ...call, name, tool, arguments: event.data.arguments, state: call.result ? call.state : "running" });
      return { ...talk, items: withCall(talk.items, id, began) };
    }
    case "progress": {
      const { call: id, ...progress } = event.data;
      return { ...talk, items: withCall(talk.items, id, (call) => ({ ...call, progress })) };
    }
    case "log": {
      const { call: id, ...log } = event.data;
      return { ...talk, items: withCall(talk.items, id, (call) => ({ ...call, logs: [...call.logs.slice(1 - LOGS), log] })) };
    }
    case "result": {
      const { call: id, parts, is_error, error, duration_ms: duration_ms } = event.data;
      return { ...talk, items: withCall(talk.items, id, (call) => ({ ...call, state: is_error ? "failed" : "done", progress: undefined, result: parts, error, duration_ms })) };
    }
    case "note":
      return { ...talk, items: [...talk.items, { kind: "note", text: event.data.text }] };
    case "end":
      return { ...talk, running: false, streaming: undefined, report: event.data, items: talk.items.map(ended) };
    default:
      return talk;
  }
}

/** A call that a run left behind gets no answer any more. */
function ended(item: ConversationItem): ConversationItem {
  if (item.kind !== "message" || !item.calls.some((call) => call.state === "running" || call.state === "queued")) return item;
  return { ...item, calls: item.calls.map((call) => (call.state === "running" || call.state === "queued" ? { ...call, state: "no result", progress: undefined } : call)) };
}

/**
 * What is kept, in the words of what is shown as far as both say the same: notes, times and log lines, which only the
 * events told, stay. What is kept tells where to fork from.
 */
export function settle(talk: ConversationView, detail: ConversationDetail): ConversationView {
  const kept = fromDetail(detail);
  const fresh = kept.items.filter((item) => item.kind === "message");
  const items: ConversationItem[] = [];
  let next = 0;
  for (const item of talk.items) {
    if (item.kind === "message") {
      const there = fresh[next];
      // What was just said may not be kept yet.
      const early = !there && detail.running && item.at === undefined && item.message.role === "user";
      if (!early && !(there && same(there.message, item.message))) break;
      items.push(there ? { ...item, at: there.at } : item);
      next++;
    } else items.push(item);
  }
  return { ...kept, model: talk.model, turn: talk.turn, items: [...items, ...fresh.slice(next)], report: kept.report ?? (detail.running ? undefined : talk.report) };
}

/** Whether it can go on without a new word. */
export function canGoOn(talk: ConversationView, state: ConversationSummary["state"] | undefined): boolean {
  if (talk.running) return false;
  const last = talk.items.findLast((item) => item.kind === "message");
  if (!last) return false;
  if (state === "completed" || talk.report?.status === "completed") return false;
  return last.message.role === "user" || last.calls.length > 0 || state === "unfinished";
}
