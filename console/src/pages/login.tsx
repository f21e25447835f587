// The sign-in: a user's at the gateway's own pages, or the gateway's token, for a cookie that scripts cannot read and a secret that
// other ports do not get.
import { useEffect, useState } from "preact/hooks";
import { del, get, type ApiError } from "../api";
import { follow, leave, refused, signInPage } from "../live";
import { toApiError } from "../load";
import { noteReturn, ownPath, signInWithToken } from "../sign-in";
import { Button, ButtonLink } from "../ui/button";
import { Failure } from "../ui/empty";
import { Hint } from "../ui/hint";
import { TextField } from "../ui/field";

export function Login() {
  return <main class="login">{refused.value ? <Refused error={refused.value} /> : <SignIn />}</main>;
}

function SignIn() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const page = ownPath(signInPage.value);
  // The refusal says whether users sign in; it is told to `onSignedOut`.
  useEffect(() => {
    if (!signInPage.value) void get("/session").catch(() => {});
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!token.trim()) return;
    setBusy(true);
    try {
      await signInWithToken(token.trim());
      setError(undefined);
      await follow();
    } catch (problem) {
      setError(toApiError(problem));
    }
    setBusy(false);
  };
  return (
    <form onSubmit={submit}>
      <h1>Consort</h1>
      {page && <ButtonLink kind="primary" href={page} onClick={noteReturn}>Sign in</ButtonLink>}
      <p class="dim">{page ? "Or with the gateway's token:" : "Sign in with the gateway's token."}</p>
      <TextField label="Token" type="password" autocomplete="current-password" spellcheck={false} value={token} onInput={(event) => setToken(event.currentTarget.value)} error={error && (error.status === 401 ? "invalid token" : error.error)} autofocus={!page} />
      <Button kind={page ? "plain" : "primary"} type="submit" busy={busy}>{page ? "Use the token" : "Sign in"}</Button>
      <p class="help"><Hint text="`consort serve` prints the token at its first start and stores it in `~/.local/state/consort/token`." /></p>
    </form>
  );
}

/** Whoever signed in, and may not use the console. */
function Refused({ error }: { error: ApiError }) {
  const again = async () => {
    await del("/session").catch(() => {});
    leave();
  };
  return (
    <div class="card">
      <h1>You cannot use this console</h1>
      <Failure error={error} />
      <Button onClick={again}>Sign in as somebody else</Button>
    </div>
  );
}
