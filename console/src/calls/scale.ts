// Where things lie on a scale: the top of an axis, and the moments of a call.
import type { CallDetail } from "../types";

/** The least round number (1, 2, 5 and so on) that is not below `value`; 1 for nothing. */
export function nice(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 5, 10]) if (value <= step * power * (1 + 1e-9)) return step * power;
  return 10 * power;
}

export function share(part: number, whole: number): number {
  return whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
}

/** A share as a percentage that does not call something nothing. */
export function percent(part: number, whole: number): string {
  const value = whole > 0 ? (part / whole) * 100 : 0;
  if (value === 0) return "0 %";
  if (value < 0.1) return "< 0.1 %";
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

export type Moment = CallDetail["timeline"][number];

export interface Span { what: "queued" | "at the server" | "asking"; from: number; to: number }

/** What a call's time went into, as shares of the whole, and where its moments lie. */
export interface Timeline { whole: number; spans: Span[]; marks: { at: number; moment: Moment }[] }

/** `elapsed` is how long a call that has not ended has gone on. A person may be asked before it is sent, and while it is at the server. */
export function timeline(moments: Moment[], took: number | undefined, elapsed: number): Timeline {
  const last = moments.reduce((most, moment) => Math.max(most, moment.at_us), 0);
  const whole = Math.max(took ?? elapsed, last, 1);
  const spans: Span[] = [];
  let phase = "queued" as Span["what"];
  let sent = false;
  let since = 0;
  const turn = (to: Span["what"], at: number) => {
    if (at > since) spans.push({ what: phase, from: since / whole, to: at / whole });
    phase = to;
    since = at;
  };
  for (const { event: what, at_us } of moments) {
    if (what === "sent") {
      sent = true;
      turn("at the server", at_us);
    } else if (what === "question" && phase !== "asking") turn("asking", at_us);
    else if (what === "answer") turn(sent ? "at the server" : "queued", at_us);
  }
  if (moments.length) turn(phase, whole);
  return { whole, spans, marks: moments.map((moment) => ({ at: share(moment.at_us, whole), moment })) };
}

/** How much of the whole each kind of span is. */
export function sums(spans: Span[]): [Span["what"], number][] {
  const found = new Map<Span["what"], number>();
  for (const span of spans) found.set(span.what, (found.get(span.what) ?? 0) + span.to - span.from);
  return [...found];
}
