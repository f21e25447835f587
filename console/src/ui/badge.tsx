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
      {annotations.read_only === true && <Badge tone="good" title="it says that it changes nothing">read only</Badge>}
      {annotations.read_only !== true && annotations.destructive === true && <Badge tone="bad" title="it says that it may destroy or overwrite">destructive</Badge>}
      {annotations.idempotent === true && <Badge title="it says that a second call with the same arguments changes nothing more">idempotent</Badge>}
      {annotations.open_world === true && <Badge title="it says that it reaches out into the world">open world</Badge>}
    </>
  );
}

const PINS: Record<PinState, [Tone, string, string]> = {
  agreed: ["good", "agreed", "as it was agreed to"],
  changed: ["warn", "changed since agreed", "its definition is no longer the one that was agreed to"],
  new: ["accent", "not agreed yet", "it came after the lock was written"],
  withheld: ["bad", "withheld", "kept from clients until it is agreed to"],
  unlocked: ["neutral", "no lock", "there is no lock file"],
};

export function PinBadge({ pin }: { pin: PinState }) {
  const [tone, word, title] = PINS[pin] ?? ["neutral", pin, ""];
  return <Badge tone={tone} title={title}>{word}</Badge>;
}
