// How a call ended, by shape, colour and word.
import type { CallReport } from "../types";
import { GOING_ON } from "./merge";

export function Outcome({ call }: { call: Pick<CallReport, "outcome" | "ok"> }) {
  const { outcome, ok } = call;
  if (outcome === undefined) return <span class="state accent"><span aria-hidden="true">◌</span> {GOING_ON}</span>;
  const tone = ok ? "good" : outcome === "cancelled" ? "neutral" : outcome === "rejected" || outcome === "not_sent" ? "warn" : "bad";
  return <span class={`state ${tone}`}><span aria-hidden="true">{ok ? "✓" : outcome === "cancelled" ? "–" : "✕"}</span> {outcome.replaceAll("_", " ")}</span>;
}
