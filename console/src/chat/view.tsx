// A conversation: messages, calls, what streams, what waits, and how the run ended.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Content } from "../content/content";
import { Markdown } from "../content/markdown";
import { pendingRequests } from "../live";
import type { MessagePart, PendingRequest, RunReport } from "../types";
import { Button } from "../ui/button";
import { Hint } from "../ui/hint";
import { Long, Text } from "../ui/text";
import { count, duration } from "../words";
import { AskedHere, CallCard, piece } from "./call";
import { PATIENCE, place } from "./place";
import type { ConversationItem, StreamingAnswer, ConversationView } from "./conversation";

const NONE: PendingRequest[] = [];

export function TalkView({ talk, id, fork, goOn }: { talk: ConversationView; id: string; fork: (at: number) => void; goOn?: () => void }) {
  const asked = pendingRequests.value.filter((request) => request.conversation === id);
  const calls = new Set(talk.items.flatMap((item) => (item.kind === "message" ? item.calls.map((call) => call.id) : [])));
  const before = useRef<ReadonlySet<string>>(new Set());
  const overdue = useOverdue(asked);
  const { loose } = place(asked, calls, before.current, overdue);
  before.current = new Set(loose.map((request) => request.id));
  const last = talk.items.findLastIndex((item) => item.kind === "message" && item.calls.length > 0);
  return (
    <div class="talk" role="log" aria-label="Conversation" aria-live="off">
      {talk.items.map((item, at) => <ItemView key={at} item={item} asked={at === last && asked.length ? asked : NONE} loose={before.current} fork={fork} />)}
      {talk.streaming && <Streamed streaming={talk.streaming} />}
      {talk.running && !talk.streaming && !asked.length && !going(talk) && <Thinking words="starting" />}
      {loose.map((request) => <AskedHere key={request.id} request={request} />)}
      {!talk.running && talk.report && <Over report={talk.report} />}
      {goOn && <div class="row"><Button icon="play" onClick={goOn}>Resume</Button><span class="small dim">sends the conversation to the model again</span></div>}
    </div>
  );
}

/** The questions that have been there for a while. */
function useOverdue(asked: PendingRequest[]): ReadonlySet<string> {
  const [overdue, set] = useState<ReadonlySet<string>>(new Set());
  const ids = asked.map((request) => request.id).join(" ");
  useEffect(() => {
    if (!ids) return undefined;
    const timer = setTimeout(() => set((old) => new Set([...old, ...ids.split(" ")])), PATIENCE);
    return () => clearTimeout(timer);
  }, [ids]);
  return overdue;
}

function going(talk: ConversationView): boolean {
  return talk.items.some((item) => item.kind === "message" && item.calls.some((call) => call.state === "running" || call.state === "queued"));
}

/** Drawn again only when the item itself changed: a long conversation stays quick while its end streams. */
function ItemView({ item, asked, loose, fork }: { item: ConversationItem; asked: PendingRequest[]; loose: ReadonlySet<string>; fork: (at: number) => void }) {
  return useMemo(() => {
    switch (item.kind) {
      case "note":
        return <p class="chat-message-aside small dim"><Hint text={item.text} /></p>;
      case "retry":
        return <p class="chat-message-aside small is-warn"><Hint text={item.error} />; retrying in {duration(item.after_ms * 1000)}</p>;
      case "message":
        return <MessageView item={item} asked={asked} loose={loose} fork={fork} />;
    }
  }, [item, ...asked]);
}

function MessageView({ item, asked, loose, fork }: { item: Extract<ConversationItem, { kind: "message" }>; asked: PendingRequest[]; loose: ReadonlySet<string>; fork: (at: number) => void }) {
  const { message, calls, at } = item;
  const who = message.role === "user" ? "You" : message.role === "assistant" ? "Agent" : "Instructions";
  let next = 0;
  return (
    <article class={`chat-message ${message.role}`} aria-label={who}>
      {message.parts.map((part, index) => {
        if (part.type === "call") {
          const call = calls[next++];
          if (!call) return undefined;
          const about = asked.filter((request) => request.call === call.id);
          return <CallCard key={index} call={call} waits={about.length > 0} requests={about.filter((request) => !loose.has(request.id))} />;
        }
        return <PartView key={index} part={part} plainly={message.role !== "assistant"} />;
      })}
      {at !== undefined && <div class="chat-message-tools"><Button kind="quiet" small icon="fork" title="Copy the conversation up to here" onClick={() => fork(at)}>Fork from here</Button></div>}
    </article>
  );
}

function PartView({ part, plainly }: { part: MessagePart; plainly: boolean }) {
  switch (part.type) {
    case "text":
      return plainly ? <div class="chat-message-text plain"><Long text={part.text} limit={8000} /></div> : <div class="chat-message-text"><Markdown text={part.text} /></div>;
    case "refusal":
      return <p class="notice warn">The model refused: <Long text={part.text} /></p>;
    case "thinking":
      return <Thought text={part.text} />;
    case "other":
      return <p class="small dim"><Text text={part.text} /></p>;
    default:
      return <Content items={[piece(part)]} />;
  }
}

function Thought({ text, open }: { text: string; open?: boolean }) {
  if (!text) return null;
  return (
    <details class="thought" open={open}>
      <summary class="small dim">Thinking</summary>
      <div class="dim"><Long text={text} limit={8000} /></div>
    </details>
  );
}

function Streamed({ streaming }: { streaming: StreamingAnswer }) {
  const { thinking, text, refusal } = streaming;
  return (
    <article class="chat-message assistant" aria-label="Agent" aria-busy="true">
      <Thought text={thinking} open={!text && !refusal} />
      {text && <div class="chat-message-text"><Markdown text={text} /></div>}
      {refusal && <p class="notice warn">The model refused: <Long text={refusal} /></p>}
      {!text && !refusal && <Thinking words={thinking ? "thinking" : "waiting for the model"} />}
    </article>
  );
}

function Thinking({ words }: { words: string }) {
  return <p class="dots small dim" role="status"><span aria-hidden="true"><i /><i /><i /></span> {words}</p>;
}

const ENDS: Record<string, string> = { completed: "Completed", limit_reached: "Limit reached", error: "Failed", cancelled: "Stopped", denied: "Denied", waiting: "Waiting for a user" };

function Over({ report }: { report: RunReport }) {
  const good = report.status === "completed";
  const facts = [
    count(report.turns, "turn"),
    report.calls > 0 && `${count(report.calls, "call")}${report.failed ? `, ${report.failed} failed` : ""}`,
    `${report.input.toLocaleString("en")} tokens in, ${report.output.toLocaleString("en")} out`,
    report.cost !== undefined && `$${report.cost.toFixed(report.cost < 0.01 ? 4 : 2)}`,
    duration(report.duration_ms * 1000),
  ].filter(Boolean).join(" · ");
  return (
    <div class={good ? "over" : `over notice ${report.status === "error" || report.status === "denied" ? "bad" : "warn"}`} role={good ? undefined : "alert"}>
      {!good && <p><strong>{ENDS[report.status] ?? report.status}</strong>{report.reason && <>: <Hint text={report.reason} /></>}</p>}
      {!good && report.hint && <p><Hint text={report.hint} /></p>}
      <p class="small dim number">{facts}</p>
    </div>
  );
}
