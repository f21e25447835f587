// A pending request: message, sender, and the form of its answer.
import { useState } from "preact/hooks";
import { post, type ApiError } from "../api";
import { safeLink } from "../content/parse-markdown";
import { toApiError } from "../load";
import { SchemaForm } from "../schema/form";
import { isObject } from "../schema/model";
import type { ElicitationAnswer, JsonSchema, PendingRequest } from "../types";
import { Approval, isApproval } from "./approval";
import { Badge } from "./badge";
import { Button, ButtonLink } from "./button";
import { Failure } from "./empty";
import { Long, Text } from "./text";
import { say } from "./toast";
import { Waits } from "./waits";

/** `bare`: without its head, where what surrounds it says who asks. */
export function PendingRequestCard({ request, done, bare }: { request: PendingRequest; done?: () => void; bare?: boolean }) {
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const answer = async (given: ElicitationAnswer) => {
    setBusy(true);
    setError(undefined);
    try {
      await post(`/pending-requests/${encodeURIComponent(request.id)}`, given);
      say(given.action !== "accept" ? "Declined" : given.content?.decision === "deny" ? "Denied" : isApproval(request) ? "Approved" : "Answered");
      done?.();
    } catch (problem) {
      setError(toApiError(problem));
      setBusy(false);
    }
  };
  return (
    <section class="card request stack" aria-label={requestTitle(request)}>
      {!bare && (
        <header class="row spread">
          <h3><Text text={requestTitle(request)} /></h3>
          <span class="row">
            {request.tool && <Badge><Text text={request.tool} /></Badge>}
            <Waits request={request} />
          </span>
        </header>
      )}
      {isApproval(request) ? <Approval request={request} busy={busy} answer={answer} /> : (
        <>
          <p class="break pre"><Long text={request.message} limit={2000} /></p>
          {request.url && <Page url={request.url} />}
          <Reply request={request} busy={busy} answer={answer} />
        </>
      )}
      {error && <Failure error={error} />}
    </section>
  );
}

export function requestTitle({ kind, server }: PendingRequest): string {
  switch (kind) {
    case "approval":
      return "Approve this call?";
    case "sampling":
      return `${server ?? "A server"} requests a completion from the model`;
    case "model":
      return "Question from the model";
    default:
      return `${server ?? "A server"} requests input`;
  }
}

export interface AnswerProps { request: PendingRequest; busy: boolean; answer: (given: ElicitationAnswer) => void }

function Reply({ request, busy, answer }: AnswerProps) {
  const [value, setValue] = useState<unknown>({});
  const [problems, setProblems] = useState(0);
  const [strict, setStrict] = useState(false);
  const accept = () => {
    setStrict(true);
    if (problems) return;
    answer(request.schema ? { action: "accept", content: isObject(value) ? value : {} } : { action: "accept" });
  };
  return (
    <form class="stack" noValidate onSubmit={(event) => {
      event.preventDefault();
      accept();
    }}>
      {request.schema !== undefined && <SchemaForm plain schema={request.schema as JsonSchema} strict={strict} change={(next, wrong) => {
        setValue(next);
        setProblems(wrong.length);
      }} />}
      <div class="row">
        <Button kind="primary" type="submit" busy={busy}>{request.url ? "Done" : request.schema ? "Send" : "Accept"}</Button>
        <Button busy={busy} onClick={() => answer({ action: "decline" })}>Decline</Button>
        <Button kind="quiet" busy={busy} onClick={() => answer({ action: "cancel" })}>Dismiss</Button>
      </div>
    </form>
  );
}

/** A page that somebody is asked to open: its host in plain sight, opened only by a click. */
function Page({ url }: { url: string }) {
  const safe = safeLink(url);
  return (
    <div class="notice warn">
      <p>You are asked to open a page{safe ? <> at <strong><Text text={new URL(safe).host} /></strong></> : ""}. Open it only if you expected this.</p>
      <p class="break mono"><Text text={url} /></p>
      {safe ? <ButtonLink small href={safe} target="_blank" rel="noopener noreferrer">Open the page</ButtonLink> : <p>Not opened: not an http or https URL.</p>}
    </div>
  );
}
