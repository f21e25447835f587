// Small marks: a word with a tone, and the state of a server by shape, colour and word.
import type { ComponentChildren } from "preact";
import type { ToolHints, PinState, ServerState } from "../types";

export type Tone = "neutral" | "good" | "warn" | "bad" | "accent";

export function Badge({ tone = "neutral", title, children }: { tone?: Tone; title?: string; children: ComponentChildren }) {
  return <span class={`badge ${tone}`} title={title}>{children}</span>;
}

const STATES: Record<ServerState, [Tone, string]> = {
  ready: ["good", "●"],
  connecting: ["accent", "◌"],
  known: ["neutral", "○"],
  configured: ["neutral", "○"],
  "needs auth": ["warn", "◆"],
  degraded: ["warn", "▲"],
  failed: ["bad", "✕"],
  disabled: ["neutral", "–"],
};

export function StateBadge({ state }: { state: ServerState }) {
  const [tone, shape] = STATES[state] ?? ["neutral", "○"];
  return <span class={`state ${tone}`}><span aria-hidden="true">{shape}</span> {state}</span>;
}

/** What a tool says of itself; unverified. */
export function AnnotationBadges({ annotations }: { annotations: ToolHints }) {
  return (
    <>
      {annotations.read_only === true && <Badge tone="good" title="readOnlyHint: declared by the server">read only</Badge>}
      {annotations.read_only !== true && annotations.destructive === true && <Badge tone="bad" title="destructiveHint: declared by the server">destructive</Badge>}
      {annotations.idempotent === true && <Badge title="idempotentHint: declared by the server">idempotent</Badge>}
      {annotations.open_world === true && <Badge title="openWorldHint: declared by the server">open world</Badge>}
    </>
  );
}

const PINS: Record<PinState, [Tone, string, string]> = {
  agreed: ["good", "approved", "matches the lock"],
  changed: ["warn", "changed since approval", "its definition differs from the lock"],
  new: ["accent", "not approved", "added after the lock was written"],
  withheld: ["bad", "blocked", "blocked until approved"],
  unlocked: ["neutral", "no lock", "there is no lock file"],
};

export function PinBadge({ pin }: { pin: PinState }) {
  const [tone, word, title] = PINS[pin] ?? ["neutral", pin, ""];
  return <Badge tone={tone} title={title}>{word}</Badge>;
}
