// Where the questions of a conversation stand. Pure.
import type { Question } from "../types";

export interface Places {
  /** At the end of the conversation. */
  loose: Question[];
  /** With the call they are about. */
  within: Question[];
  /** Not shown yet: their call is about to be. */
  early: Question[];
}

/** How long a question waits for its call to be shown, in milliseconds. */
export const PATIENCE = 3000;

/**
 * A question stands with its call. Questions and calls come by two streams, so a question may be there first: it then
 * waits a moment, and if its call is still not shown it stands at the end, and stays there. It never moves: its form
 * would be made anew, and what was typed be lost.
 */
export function place(asked: Question[], calls: ReadonlySet<string>, loose: ReadonlySet<string>, overdue: ReadonlySet<string>): Places {
  const places: Places = { loose: [], within: [], early: [] };
  for (const question of asked) {
    if (loose.has(question.id) || !question.call) places.loose.push(question);
    else if (calls.has(question.call)) places.within.push(question);
    else if (overdue.has(question.id)) places.loose.push(question);
    else places.early.push(question);
  }
  return places;
}
