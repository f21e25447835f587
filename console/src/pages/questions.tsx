// Questions: everything that waits for a person, answerable here.
import { useEffect, useRef } from "preact/hooks";
import { alerts, canAlert, turnAlerts } from "../alerts";
import { link, questions } from "../live";
import { to } from "../router";
import type { Question } from "../types";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { Empty, Skeleton } from "../ui/empty";
import { Page } from "../ui/page";
import { QuestionCard } from "../ui/question";
import { Text } from "../ui/text";
import { say } from "../ui/toast";
import { Waits } from "../ui/waits";
import { plain } from "../words";

export function Questions(_: { id: string }) {
  const list = questions.value;
  useVanished(list);
  return (
    <Page title="Questions" lead="Calls that want your word, and what servers and models ask in the middle of one." actions={canAlert() && <Button onClick={turnAlerts} aria-pressed={alerts.value}>{alerts.value ? "Browser notices: on" : "Browser notices: off"}</Button>}>
      {link.value === "starting" ? <Skeleton lines={6} /> : list.length ? (
        <ul class="stack questions" aria-label="Waiting questions">{list.map((question) => <li key={question.id}><Waiting question={question} /></li>)}</ul>
      ) : (
        <Empty title="Nothing waits">
          What a policy wants to ask about comes here (<code>then = "ask"</code> of a rule), and what servers ask during a call. It can be answered here or where the call was made, whichever is first.
        </Empty>
      )}
    </Page>
  );
}

/** Says so when a question goes without this page having answered it. */
function useVanished(list: Question[]) {
  const before = useRef(list);
  useEffect(() => {
    const here = new Set(list.map((question) => question.id));
    for (const question of before.current) {
      if (here.has(question.id) || answered.delete(question.id)) continue;
      say(`The question about ${plain(question.tool ?? question.server ?? question.caller)} is over: answered elsewhere, or nobody waits any more`);
    }
    before.current = list;
  }, [list]);
}

const answered = new Set<string>();

const KINDS: Record<Question["kind"], string> = { approval: "approval", server: "a server asks", model: "a model asks", sampling: "a server wants to use the model" };

/** Where the tool is: `server.tool`, however it was named. */
function toolId({ server, tool = "" }: Question): string {
  return !server || tool.startsWith(`${server}.`) ? tool : `${server}.${tool}`;
}

function Waiting({ question }: { question: Question }) {
  return (
    <article class="waiting-question" aria-label={`Question of ${plain(question.server ?? question.caller)}`}>
      <header class="row spread">
        <div class="row small">
          <Badge tone={question.kind === "approval" ? "accent" : "neutral"}>{KINDS[question.kind] ?? question.kind}</Badge>
          <span class="break"><span class="dim">for</span> <Text text={question.caller} /></span>
          {question.tool && <span class="break"><span class="dim">tool</span> <a href={to("tools", toolId(question))}><Text text={question.tool} /></a></span>}
          {question.server && <span class="break"><span class="dim">on</span> <a href={to("servers", question.server)}><Text text={question.server} /></a></span>}
          {question.conversation && <a href={to("chat", question.conversation)}>in a conversation</a>}
        </div>
        <Waits question={question} />
      </header>
      <QuestionCard bare question={question} done={() => answered.add(question.id)} />
    </article>
  );
}
