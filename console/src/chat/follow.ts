// Reads a conversation and follows the run that is on in it, also across a lost connection.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type ApiError, stream } from "../api";
import { conversation as told } from "../live";
import { toApiError } from "../load";
import type { ConversationDetail } from "../types";
import { fromDetail, NOTHING, settle, step, type ConversationView } from "./conversation";

export interface Followed {
  talk: ConversationView;
  detail?: ConversationDetail;
  error?: ApiError;
  /** Reads it again and follows what is on; called after something was said. */
  again: () => void;
  /** Shows at once what was said, before the gateway tells it. */
  said: (text: string) => void;
}

/** Events are taken together for so long: a fast model does not make the page draw each word. */
const GATHER = 33;

const path = (id: string) => `/conversations/${encodeURIComponent(id)}`;

export function useConversation(id: string): Followed {
  const [state, set] = useState<{ talk: ConversationView; detail?: ConversationDetail; error?: ApiError }>({ talk: NOTHING });
  const [turn, setTurn] = useState(0);
  const again = useCallback(() => setTurn((turn) => turn + 1), []);
  const on = useRef(false);
  useEffect(() => {
    const abort = new AbortController();
    void follow(id, set, on, abort.signal);
    return () => abort.abort();
  }, [id, turn]);
  // A run that began elsewhere, or after a question was answered.
  const news = told.value;
  useEffect(() => {
    if (news?.id === id && !on.current) again();
  }, [news]);
  const said = (text: string) => set((old) => ({ ...old, error: undefined, talk: { ...old.talk, running: true, report: undefined, items: [...old.talk.items, { kind: "message", message: { role: "user", parts: [{ type: "text", text }] }, calls: [] }] } }));
  return { ...state, again, said };
}

type Set = (change: (old: { talk: ConversationView; detail?: ConversationDetail; error?: ApiError }) => { talk: ConversationView; detail?: ConversationDetail; error?: ApiError }) => void;

async function follow(id: string, set: Set, on: { current: boolean }, signal: AbortSignal) {
  on.current = true;
  let pause = 500;
  for (let round = 0; !signal.aborted; round++) {
    try {
      const detail = await get<ConversationDetail>(path(id), signal);
      // What is shown stays where it says the same. In a run that was followed before, all comes again by its events.
      set((old) => ({ detail, talk: old.detail && !(round && detail.running) ? settle(old.talk, detail) : fromDetail(detail) }));
      if (!detail.running) break;
      if (await listen(id, set, signal)) {
        const after = await get<ConversationDetail>(path(id), signal);
        set((old) => ({ detail: after, talk: settle(old.talk, after) }));
        if (!after.running) break;
      }
      pause = 500;
    } catch (error) {
      if (signal.aborted) return;
      const problem = toApiError(error);
      set((old) => ({ ...old, error: problem }));
      if (problem.status !== 0) break;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 5000);
  }
  if (!signal.aborted) on.current = false;
}

/** Takes in a run's events; true once it is over. */
async function listen(id: string, set: Set, signal: AbortSignal): Promise<boolean> {
  let over = false;
  let waiting: [string, unknown][] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    const events = waiting;
    waiting = [];
    if (!signal.aborted && events.length) set((old) => ({ ...old, error: undefined, talk: events.reduce((talk, [name, data]) => step(talk, name, data), old.talk) }));
  };
  try {
    await stream(`${path(id)}/events`, undefined, (name, data) => {
      if (name === "end" || name === "idle") over = true;
      waiting.push([name, data]);
      timer ??= setTimeout(flush, GATHER);
    }, signal);
  } finally {
    clearTimeout(timer);
    flush();
  }
  return over;
}
