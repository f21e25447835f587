// What happens now: the one /api/events stream, as signals.
import { batch, computed, signal } from "@preact/signals";
import { onSignedOut, ApiError, stream } from "./api";
import { toApiError } from "./load";
import { forgetSecret, shareSecret } from "./page-secret";
import { go } from "./router";
import { signInWithProof, takeProof } from "./sign-in";
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
/** The page at which users sign in, if they do. */
export const signInPage = signal<string | undefined>(undefined);
/** Why the console is closed to whoever signed in. */
export const refused = signal<ApiError | undefined>(undefined);
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
          refused.value = undefined;
          hear(name, data);
        });
      }, mine.signal);
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof ApiError && error.status === 401) return;
      if (error instanceof ApiError && error.status === 403) return refuse(error);
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

function forget() {
  signedIn.value = false;
  session.value = undefined;
  servers.value = undefined;
  pendingRequests.value = [];
  calls.value = [];
}

onSignedOut(({ link }) => {
  stop?.abort();
  forgetSecret();
  batch(() => {
    signInPage.value = link;
    forget();
  });
});

/** Shows why the console is closed, with nothing else. */
export function refuse(error: ApiError) {
  batch(() => {
    refused.value = error;
    forget();
  });
}

/** Ends what is shown after a sign-out. */
export function leave() {
  stop?.abort();
  forgetSecret();
  batch(() => {
    refused.value = undefined;
    forget();
  });
  // What stands on the page to sign in is the gateway's word.
  void follow();
}

/** Begins the session that a sign-in led to, if one did. */
async function enter() {
  const taken = takeProof();
  if (taken) {
    // It is worth nothing later, and stands in no history.
    go(taken.back ?? location.pathname + location.search, "replace");
    try {
      // The sign-in before it may have taken the connection with it.
      await signInWithProof(taken.proof).catch((error) => {
        if (toApiError(error).status !== 0) throw error;
        return signInWithProof(taken.proof);
      });
    } catch (error) {
      const problem = toApiError(error);
      if (problem.status === 403) return refuse(problem);
    }
  }
  await follow();
}

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
  void enter();
}
