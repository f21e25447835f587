// What is shown when there is nothing, not yet something, or something went wrong.
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api";
import type { Loaded } from "../load";
import type { ProblemReport } from "../types";
import { noteReturn, ownPath } from "../sign-in";
import { Button, ButtonLink } from "./button";
import { Hint } from "./hint";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><p class="empty-title">{title}</p>{children && <div class="dim">{children}</div>}</div>;
}

/** The page that helps against a refusal: the sign-in, or the user's own access. */
function HelpLink({ link }: { link?: string }) {
  const path = ownPath(link);
  if (!path) return null;
  const isSignIn = path.includes("/oauth/sign-in");
  return <ButtonLink small href={path} onClick={isSignIn ? noteReturn : undefined}>{isSignIn ? "Sign in again" : "Your access"}</ButtonLink>;
}

export function Failure({ error, retry }: { error: ApiError | { error: string; hint?: string; link?: string }; retry?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <p><Hint text={error.error} /></p>
      {error.hint && <p class="dim"><Hint text={error.hint} /></p>}
      <HelpLink link={error.link} />
      {retry && <Button small onClick={retry}>Retry</Button>}
    </div>
  );
}

export function Problems({ problems }: { problems: ProblemReport[] }) {
  if (!problems.length) return null;
  return (
    <ul class="problems">
      {problems.map((problem) => (
        <li class={`notice ${problem.severity === "error" ? "bad" : problem.severity === "warning" ? "warn" : "neutral"}`}>
          <p><strong>{problem.severity}</strong> <Hint text={problem.message} /></p>
          {problem.hint && <p class="dim"><Hint text={problem.hint} /></p>}
        </li>
      ))}
    </ul>
  );
}

/** Grey lines where something will be. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  return <div class="skeleton" aria-hidden="true">{Array.from({ length: lines }, (_, at) => <div key={at} />)}</div>;
}

/** What was read, or why not, or that it is on its way. */
export function Show<T>({ from, lines, children }: { from: Loaded<T>; lines?: number; children: (value: T) => ComponentChildren }) {
  return (
    <>
      {from.error && <Failure error={from.error} retry={from.reload} />}
      {from.value !== undefined ? children(from.value) : !from.error && <Skeleton lines={lines} />}
    </>
  );
}
