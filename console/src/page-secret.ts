// The page's half of the session. Cookies reach every port of a host; this reaches pages of our own origin only.
const KEY = "consort.session";
const HEADER = "X-Consort-Session";

let secret = stored();

function stored(): string {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // storage may be closed to us
  }
}

function keep(value: string) {
  secret = value;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // it then lasts as long as the page
  }
}

/** The header that goes with every request. */
export function sessionHeader(): Record<string, string> {
  return secret ? { [HEADER]: secret } : {};
}

/** Whether these headers are of the session as it is now. */
export function isCurrent(headers: Record<string, string>): boolean {
  return (headers[HEADER] ?? "") === secret;
}

/** Other tabs of this origin, which share the cookie and so must share the secret. */
let tabs: BroadcastChannel | undefined;

/** Keeps the secret of a new session, here and in the other tabs. */
export function keepSecret(value: string) {
  keep(value);
  tabs?.postMessage({ secret: value });
}

export function forgetSecret() {
  keep("");
}

/** Answers tabs that have no secret; asks for one if this tab has none. `signedIn` is told when it gets one. */
export function shareSecret(signedIn: () => void) {
  if (!("BroadcastChannel" in globalThis)) return;
  const channel = (tabs = new BroadcastChannel(KEY));
  channel.onmessage = ({ data }: MessageEvent<{ secret?: string }>) => {
    if (data.secret === undefined) {
      if (secret) channel.postMessage({ secret });
    } else if (data.secret !== secret) {
      keep(data.secret);
      signedIn();
    }
  };
  if (!secret) channel.postMessage({});
}
