// Where the questions of a conversation stand. Pure.
import type { PendingRequest } from "../types";

export interface Places {
  /** At the end of the conversation. */
  loose: PendingRequest[];
  /** With the call they are about. */
  within: PendingRequest[];
  /** Not shown yet: their call is about to be. */
  early: PendingRequest[];
}

/** How long a question waits for its call to be shown, in milliseconds. */
export const PATIENCE = 3000;

/**
 * A question stands with its call. Questions and calls come by two streams, so a question may be there first: it then
 * waits a moment, and if its call is still not shown it stands at the end, and stays there. It never moves: its form
 * would be made anew, and what was typed be lost.
 */
export function place(asked: PendingRequest[], calls: ReadonlySet<string>, loose: ReadonlySet<string>, overdue: ReadonlySet<string>): Places {
  const places: Places = { loose: [], within: [], early: [] };
  for (const request of asked) {
    if (loose.has(request.id) || !request.call) places.loose.push(request);
    else if (calls.has(request.call)) places.within.push(request);
    else if (overdue.has(request.id)) places.loose.push(request);
    else places.early.push(request);
  }
  return places;
}
