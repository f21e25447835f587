// A tool call within a conversation: arguments, how far it is, what it logged, what is asked about it, its result.
import { useState } from "preact/hooks";
import { Content } from "../content/content";
import { to } from "../router";
import type { ContentBlock as Piece, MessagePart, PendingRequest } from "../types";
import { Icon } from "../ui/icon";
import { Progress } from "../ui/progress";
import { requestTitle, PendingRequestCard } from "../ui/pending-request";
import { Block, Long, Text } from "../ui/text";
import { Waits } from "../ui/waits";
import { duration, plain } from "../words";
import type { Log, CallView } from "./conversation";

const SHAPES: Record<CallView["state"], [string, string]> = {
  "queued": ["neutral", "◌"],
  "running": ["accent", "◌"],
  done: ["good", "✓"],
  failed: ["bad", "✕"],
  "no result": ["neutral", "–"],
};

/** `waits`: something is asked about it, here or further down. */
export function CallCard({ call, waits, requests }: { call: CallView; waits: boolean; requests: PendingRequest[] }) {
  const [open, setOpen] = useState(false);
  const [tone, shape] = SHAPES[call.state];
  const on = call.state === "running";
  return (
    <section class="chat-call" aria-label={`Call of ${plain(call.name)}`}>
      <button type="button" class="chat-call-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "right"} />
        <span class={`state ${tone}`}><span aria-hidden="true">{shape}</span><span class="sr"> {call.state}</span></span>
        <strong class="break"><Text text={call.tool ?? call.name} /></strong>
        {!open && <span class="chat-call-preview dim"><Text text={brief(call.arguments)} /></span>}
        <span class="chat-call-state small dim number">{waits ? "waiting for you" : on || call.state === "queued" || call.state === "no result" ? call.state : call.duration_ms !== undefined ? duration(call.duration_ms * 1000) : call.state}</span>
      </button>
      {open && (
        <div class="chat-call-body stack">
          <div class="stack tight"><h4>Arguments</h4><Block label="Arguments" text={JSON.stringify(call.arguments, null, 2)} /></div>
          {call.tool && <p class="small"><a href={to("tools", call.tool)}>Open the tool</a></p>}
        </div>
      )}
      {on && !waits && <div class="chat-call-body"><Progress value={call.progress?.progress ?? 0} total={call.progress?.total} message={call.progress?.message} label={`Progress of ${plain(call.name)}`} /></div>}
      {call.logs.length > 0 && <Logs logs={call.logs} all={open} />}
      {requests.map((request) => <div class="chat-call-body" key={request.id}><AskedHere request={request} /></div>)}
      {call.result && (open
        ? <div class="chat-call-body stack tight"><h4>{call.state === "failed" ? "Error" : "Result"}</h4><Content items={call.result.map(piece)} /></div>
        : <p class={call.state === "failed" ? "chat-call-body made-result is-bad" : "chat-call-body made-result dim"}><Text text={glance(call.result)} /></p>)}
    </section>
  );
}

export function AskedHere({ request }: { request: PendingRequest }) {
  return (
    <div class="asked-here">
      <p class="row spread small"><strong><Text text={requestTitle(request)} /></strong><Waits request={request} /></p>
      <PendingRequestCard bare request={request} />
    </div>
  );
}

function Logs({ logs, all }: { logs: Log[]; all: boolean }) {
  const shown = all ? logs : logs.slice(-3);
  return (
    <ol class="chat-call-body logs" aria-label="Log lines">
      {shown.length < logs.length && <li class="dim">{logs.length - shown.length} earlier</li>}
      {shown.map((log, at) => <li key={logs.length - shown.length + at}><span class={/^(warn|err|crit|alert|emerg)/.test(log.level ?? "") ? "is-warn" : "dim"}>{log.level ?? "log"}</span> <Long text={typeof log.data === "string" ? log.data : JSON.stringify(log.data)} limit={300} /></li>)}
    </ol>
  );
}

/** A value on one line, cut. */
export function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return text === "{}" ? "" : text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

/** What a result begins with. */
export function glance(parts: MessagePart[]): string {
  for (const part of parts) {
    if ("text" in part && part.text.trim()) {
      const text = part.text.trim().slice(0, 240).replaceAll(/\s+/g, " ");
      return part.text.trim().length > 240 ? `${text}…` : text;
    }
  }
  return parts.length ? parts.map((part) => part.type).join(", ") : "an empty result";
}

/** A part of a message as MCP content. */
export function piece(part: MessagePart): Piece {
  switch (part.type) {
    case "image": case "audio":
      return { type: part.type, mimeType: part.mime, data: part.data };
    case "call":
      return { type: "text", text: `${part.name} ${JSON.stringify(part.arguments)}` };
    case "result":
      return { type: "text", text: glance(part.parts) };
    default:
      return { type: "text", text: part.text };
  }
}
