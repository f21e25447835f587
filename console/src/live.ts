// What happens now: the one /api/events stream, as signals.
import { batch, computed, signal } from "@preact/signals";
import { onSignedOut, ApiError, stream } from "./api";
import { forgetSecret, shareSecret } from "./page-secret";
import type { CallReport, PendingRequest, ServerReport, SessionReport } from "./types";

/** How many calls are kept for the live list. */
export const RECENT = 200;

export const session = signal<SessionReport | undefined>(undefined);
export const servers = signal<ServerReport[] | undefined>(undefined);
export const pendingRequests = signal<PendingRequest[]>([]);
/** Newest first; a call that comes further is replaced in its place. */
export const calls = signal<CallReport[]>([]);
/** Changes when more calls were made than could be told: what is known of them is to be read again. */
export const missed = signal(0);
/** Whether the stream is kept although nobody looks: somebody wants to be told of questions. */
export const watchful = signal(false);
/** Changes whenever tools, prompts or resources are to be read again. */
export const generation = signal("");
/** The last thing said of a conversation; a new object each time. */
export const conversation = signal<{ id: string; state: string } | undefined>(undefined);

export type Link = "starting" | "open" | "lost";
export const link = signal<Link>("starting");
/** Undefined until the first answer. */
export const signedIn = signal<boolean | undefined>(undefined);
/** How many calls go on. */
export const going = computed(() => calls.value.reduce((sum, call) => sum + (call.outcome === undefined ? 1 : 0), 0));
export const pendingCount = computed(() => pendingRequests.value.length);

let stop: AbortController | undefined;
let wake: (() => void) | undefined;

/** Follows the events until the session ends; called at the start and after a login. */
export async function follow() {
  stop?.abort();
  const mine = (stop = new AbortController());
  let pause = 500;
  while (!mine.signal.aborted) {
    let first = true;
    try {
      await stream("/events", undefined, (name, data) => {
        pause = 500;
        batch(() => {
          // What was going on may have ended unheard; the stream begins with what still is.
          if (first) calls.value = calls.value.filter((call) => call.outcome !== undefined);
          first = false;
          link.value = "open";
          signedIn.value = true;
          hear(name, data);
        });
      }, mine.signal);
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof ApiError && error.status === 401) return;
    }
    link.value = "lost";
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pause);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    pause = Math.min(pause * 2, 5000);
  }
}

function hear(name: string, data: any) {
  switch (name) {
    case "session":
      session.value = data;
      break;
    case "servers":
      servers.value = data;
      break;
    case "pending":
      pendingRequests.value = data;
      break;
    case "catalog":
      generation.value = data.generation;
      break;
    case "call":
      put(data);
      break;
    case "missed":
      calls.value = calls.value.filter((call) => call.outcome !== undefined);
      missed.value++;
      break;
    case "conversation":
      conversation.value = data;
      break;
  }
}

function put(call: CallReport) {
  const list = calls.value;
  const at = list.findIndex((other) => other.id === call.id);
  calls.value = at < 0 ? [call, ...list].slice(0, RECENT) : list.with(at, call);
}

/** Tries again at once instead of after the pause. */
export function retryNow() {
  wake?.();
}

onSignedOut(() => {
  stop?.abort();
  forgetSecret();
  batch(() => {
    signedIn.value = false;
    session.value = undefined;
    servers.value = undefined;
    pendingRequests.value = [];
    calls.value = [];
  });
});

/** A page that nobody looks at lets go of its stream after so long: browsers allow six connections to a gateway. */
const UNSEEN = 300_000;

export function startLive() {
  let unseen = 0;
  addEventListener("online", retryNow);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(unseen);
    if (document.hidden) unseen = window.setTimeout(() => watchful.value || stop?.abort(), UNSEEN);
    else if (stop?.signal.aborted && signedIn.value) void follow();
    else retryNow();
  });
  shareSecret(() => void follow());
  void follow();
}
