// The end of a sign-in. The address that it leads to has a proof in its fragment, which browsers send to no server; with the cookie
// of the sign-in it begins a session. Cookies alone reach every port of a host, and begin none.
import { post } from "./api";
import { keepSecret } from "./page-secret";

const MARK = "#sign-in=";
const RETURN = "consort.return";

/** The proof in an address, if there is one. */
export function proofIn(hash: string): string | undefined {
  return hash.startsWith(MARK) && hash.length > MARK.length ? decodeURIComponent(hash.slice(MARK.length)) : undefined;
}

/** The path of a link of the gateway; undefined for one that leads elsewhere. */
export function ownPath(link: string | undefined): string | undefined {
  return link?.startsWith("/") && !/^\/[/\\]/.test(link) ? link : undefined;
}

/** The proof in the address, and the page that was left to sign in, if there is one. */
export function takeProof(): { proof: string; back?: string } | undefined {
  const proof = proofIn(location.hash);
  if (proof === undefined) return undefined;
  try {
    const back = sessionStorage.getItem(RETURN) ?? undefined;
    sessionStorage.removeItem(RETURN);
    return { proof, back: ownPath(back) };
  } catch {
    return { proof }; // storage may be closed to us
  }
}

/** Notes the page to come back to. */
export function noteReturn(): void {
  try {
    sessionStorage.setItem(RETURN, location.pathname + location.search);
  } catch {
    // it then leads to the first page
  }
}

/** Begins a session with the owner's token. */
export async function signInWithToken(token: string): Promise<void> {
  keepSecret((await post<{ page_secret?: string }>("/session", { token })).page_secret ?? "");
}

/** Begins a session of the user who has just signed in. */
export async function signInWithProof(proof: string): Promise<void> {
  const headers = { "X-Consort-Sign-In": proof };
  keepSecret((await post<{ page_secret?: string }>("/session", {}, undefined, headers)).page_secret ?? "");
}
