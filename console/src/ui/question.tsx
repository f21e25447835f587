// A question that waits: what is asked, by whom, and how to answer.
import { useState } from "preact/hooks";
import { post, type Refused } from "../api";
import { safeLink } from "../content/parse-markdown";
import { refused } from "../load";
import { SchemaForm } from "../schema/form";
import { isObject } from "../schema/model";
import type { Answer, JsonSchema, Question } from "../types";
import { Approval, isApproval } from "./approval";
import { Badge } from "./badge";
import { Button, ButtonLink } from "./button";
import { Failure } from "./empty";
import { Long, Text } from "./text";
import { say } from "./toast";
import { Waits } from "./waits";

/** `bare`: without its head, where what surrounds it says who asks. */
export function QuestionCard({ question, done, bare }: { question: Question; done?: () => void; bare?: boolean }) {
  const [error, setError] = useState<Refused | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const answer = async (given: Answer) => {
    setBusy(true);
    setError(undefined);
    try {
      await post(`/questions/${encodeURIComponent(question.id)}`, given);
      say(given.action !== "accept" ? "Declined" : given.content?.decision === "deny" ? "Denied" : isApproval(question) ? "Approved" : "Answered");
      done?.();
    } catch (problem) {
      setError(refused(problem));
      setBusy(false);
    }
  };
  return (
    <section class="card question stack" aria-label={asks(question)}>
      {!bare && (
        <header class="row spread">
          <h3><Text text={asks(question)} /></h3>
          <span class="row">
            {question.tool && <Badge><Text text={question.tool} /></Badge>}
            <Waits question={question} />
          </span>
        </header>
      )}
      {isApproval(question) ? <Approval question={question} busy={busy} answer={answer} /> : (
        <>
          <p class="break pre"><Long text={question.message} limit={2000} /></p>
          {question.url && <Page url={question.url} />}
          <Reply question={question} busy={busy} answer={answer} />
        </>
      )}
      {error && <Failure error={error} />}
    </section>
  );
}

export function asks({ kind, server }: Question): string {
  switch (kind) {
    case "approval":
      return "May this call be made?";
    case "sampling":
      return `${server ?? "A server"} wants to use the model`;
    case "model":
      return "The model asks";
    default:
      return `${server ?? "A server"} asks`;
  }
}

export interface Part { question: Question; busy: boolean; answer: (given: Answer) => void }

function Reply({ question, busy, answer }: Part) {
  const [value, setValue] = useState<unknown>({});
  const [problems, setProblems] = useState(0);
  const [strict, setStrict] = useState(false);
  const accept = () => {
    setStrict(true);
    if (problems) return;
    answer(question.schema ? { action: "accept", content: isObject(value) ? value : {} } : { action: "accept" });
  };
  return (
    <form class="stack" noValidate onSubmit={(event) => {
      event.preventDefault();
      accept();
    }}>
      {question.schema !== undefined && <SchemaForm plain schema={question.schema as JsonSchema} strict={strict} change={(next, wrong) => {
        setValue(next);
        setProblems(wrong.length);
      }} />}
      <div class="row">
        <Button kind="primary" type="submit" busy={busy}>{question.url ? "I have done it" : question.schema ? "Send" : "Accept"}</Button>
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
      {safe ? <ButtonLink small href={safe} target="_blank" rel="noopener noreferrer">Open the page</ButtonLink> : <p>It is not opened from here: it is neither http nor https.</p>}
    </div>
  );
}
