// May a call be made: who wants to call what with which arguments, which can be changed, and the decision.
import { useMemo, useState } from "preact/hooks";
import type { PendingRequest } from "../types";
import { Button } from "./button";
import { TextArea, TextField } from "./field";
import { Hint } from "./hint";
import type { AnswerProps } from "./pending-request";

interface Choice { value: string; title: string }

/** The decisions that the form of an approval offers; nothing if it is no such form. */
export function decisions(request: PendingRequest): Choice[] | undefined {
  const found = property(request, "decision");
  if (request.kind !== "approval" || !found) return undefined;
  const choices = Array.isArray(found.oneOf)
    ? (found.oneOf as { const?: unknown; title?: unknown }[]).map((one) => ({ value: String(one.const), title: String(one.title ?? one.const) }))
    : Array.isArray(found.enum) ? found.enum.map((value, at) => ({ value: String(value), title: String((found.enumNames as unknown[] | undefined)?.[at] ?? value) })) : [];
  return choices.length ? choices : undefined;
}

function property(request: PendingRequest, name: string): Record<string, unknown> | undefined {
  const schema = request.schema;
  if (typeof schema !== "object") return undefined;
  const found = (schema.properties as Record<string, unknown> | undefined)?.[name];
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : undefined;
}

export function isApproval(request: PendingRequest): boolean {
  return decisions(request) !== undefined;
}

/** JSON text set out over lines; what is no JSON stays as it is. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function wrong(text: string): string | undefined {
  if (!text.trim()) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? undefined : "arguments must be an object: { … }";
  } catch (error) {
    return `not JSON: ${(error as Error).message}`;
  }
}

/** The arguments that a message ends with, where a form could not hold them itself; empty if they are cut or not there. */
export function shown(message: string): string {
  const at = message.indexOf("\n\n{");
  const text = at < 0 ? "" : message.slice(at + 2);
  return text && !wrong(text) ? text : "";
}

/** The message ends with the arguments; they are shown once, where they can be changed. What is not surely them stays. */
export function without(message: string, args: string): string {
  const at = message.indexOf("\n\n{");
  return args && at >= 0 && pretty(message.slice(at + 2)) === pretty(args) ? message.slice(0, at) : message;
}

const SHORT: Record<string, string> = { once: "Approve once", session: "For this session", always: "Always" };

export function Approval({ request, busy, answer }: AnswerProps) {
  const field = property(request, "arguments");
  const given = typeof field?.default === "string" ? field.default : shown(request.message);
  const first = useMemo(() => (field ? pretty(given) : undefined), [given, !field]);
  const [typed, setTyped] = useState(first);
  const [reason, setReason] = useState("");
  const [denying, setDenying] = useState(false);
  const problem = typed === undefined || typed === first ? undefined : wrong(typed);
  const choices = decisions(request) ?? [];
  const send = (decision: string) => {
    const content: Record<string, unknown> = { decision };
    if (decision === "deny") {
      if (reason.trim()) content.reason = reason.trim();
    } else if (typed !== undefined && typed !== first && typed.trim()) content.arguments = typed;
    answer({ action: "accept", content });
  };
  const words = without(request.message, given);
  return (
    <div class="stack approval">
      <p class="break asked"><Hint text={words} /></p>
      {typed !== undefined && <TextArea label="Arguments" class="code" rows={Math.min(12, Math.max(3, typed.split("\n").length))} value={typed} error={problem} help={typed !== first ? "Edited: these arguments are sent instead." : given ? undefined : "Leave empty to send them as shown above."} onInput={(event) => setTyped(event.currentTarget.value)} />}
      {denying ? (
        <form class="stack" onSubmit={(event) => { event.preventDefault(); send("deny"); }}>
          <TextField label="Reason for the caller" value={reason} autofocus onInput={(event) => setReason(event.currentTarget.value)} />
          <div class="row"><Button kind="danger" type="submit" busy={busy}>Deny</Button><Button kind="quiet" onClick={() => setDenying(false)}>Back</Button></div>
        </form>
      ) : (
        <div class="row">
          {choices.filter((choice) => choice.value !== "deny").map((choice, at) => (
            <Button key={choice.value} kind={at ? "plain" : "primary"} busy={busy} disabled={!!problem} title={choice.title} onClick={() => send(choice.value)}>{SHORT[choice.value] ?? choice.title}</Button>
          ))}
          {choices.some((choice) => choice.value === "deny") && <Button disabled={busy} onClick={() => setDenying(true)}>Deny…</Button>}
        </div>
      )}
    </div>
  );
}
