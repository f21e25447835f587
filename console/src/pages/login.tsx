// The login: the gateway's token for a cookie that scripts cannot read and a secret that other ports do not get.
import { useState } from "preact/hooks";
import { post, type ApiError } from "../api";
import { follow } from "../live";
import { toApiError } from "../load";
import { keepSecret } from "../page-secret";
import { Button } from "../ui/button";
import { Hint } from "../ui/hint";
import { TextField } from "../ui/field";

export function Login() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!token.trim()) return;
    setBusy(true);
    try {
      const { page_secret } = await post<{ page_secret?: string }>("/session", { token: token.trim() });
      keepSecret(page_secret ?? "");
      setError(undefined);
      await follow();
    } catch (problem) {
      setError(toApiError(problem));
    }
    setBusy(false);
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <h1>Consort</h1>
        <p class="dim">Sign in with the gateway's token.</p>
        <TextField label="Token" type="password" autocomplete="current-password" spellcheck={false} value={token} onInput={(event) => setToken(event.currentTarget.value)} error={error && (error.status === 401 ? "invalid token" : error.error)} autofocus />
        <Button kind="primary" type="submit" busy={busy}>Sign in</Button>
        <p class="help"><Hint text="`consort serve` prints the token at its first start and stores it in `~/.local/state/consort/token`." /></p>
      </form>
    </main>
  );
}
