// The list of calls: what the ledger told and what happens now, without doubles, and which of them are wanted.
import type { CallReport } from "../types";

export interface Filter { caller: string; server: string; name: string; outcome: string }

export const FILTERS = ["caller", "server", "name", "outcome"] as const;

/** How an outcome is asked for that is not there yet. */
export const GOING_ON = "running";

/** As the gateway looks for them: a caller by its name with or without what it is, a part of a tool's name. */
export function fits(call: CallReport, filter: Filter): boolean {
  return (
    (!filter.caller || call.caller === filter.caller || call.caller.slice(call.caller.indexOf(":") + 1) === filter.caller) &&
    (!filter.server || call.server === filter.server) &&
    (!filter.name || call.name.toLowerCase().includes(filter.name.toLowerCase())) &&
    (!filter.outcome || (call.outcome ?? GOING_ON) === filter.outcome)
  );
}

/** Of two tellings of the same call the one that is further. */
export function further(one: CallReport, other: CallReport): CallReport {
  if ((one.outcome === undefined) !== (other.outcome === undefined)) return one.outcome === undefined ? other : one;
  return other.steps >= one.steps ? other : one;
}

/** All, each once, newest first. Of what both know, the newer telling is taken. */
export function merge(ledger: CallReport[], live: CallReport[]): CallReport[] {
  const all = new Map<string, CallReport>();
  for (const call of ledger) all.set(call.id, call);
  for (const call of live) {
    const known = all.get(call.id);
    all.set(call.id, known ? further(known, call) : call);
  }
  return [...all.values()].sort(newest);
}

function newest(one: CallReport, other: CallReport): number {
  const apart = Date.parse(other.time) - Date.parse(one.time);
  return apart || (one.id < other.id ? 1 : one.id > other.id ? -1 : 0);
}

export interface Shown { on: CallReport[]; ended: CallReport[]; fresh: number }

/** Calls that go on first. While held, every row stays where it is and only its words change; `fresh` are those kept back. */
export function arrange(calls: CallReport[], held: { on: string[]; ended: string[] } | undefined): Shown {
  if (!held) return { on: calls.filter((call) => call.outcome === undefined), ended: calls.filter((call) => call.outcome !== undefined), fresh: 0 };
  const by = new Map(calls.map((call) => [call.id, call]));
  const pick = (ids: string[]) => ids.map((id) => by.get(id)).filter((call): call is CallReport => call !== undefined);
  const on = pick(held.on);
  const ended = pick(held.ended);
  // What is older than the last row was asked for ("load more") and may come in below.
  const shown = new Set([...held.on, ...held.ended]);
  const lowest = ended.at(-1);
  const below = lowest ? calls.slice(calls.findIndex((call) => call.id === lowest.id) + 1).filter((call) => !shown.has(call.id) && call.outcome !== undefined) : [];
  return { on, ended: [...ended, ...below], fresh: calls.length - on.length - ended.length - below.length };
}
