// One tool: what it says, how to call it, its definition, and what consort makes of it.
import type { ComponentChildren } from "preact";
import { get, query } from "../api";
import { generation } from "../live";
import { useLoad } from "../load";
import { route, setQuery, to } from "../router";
import { Outline } from "../schema/outline";
import type { JsonSchema, ToolDetail } from "../types";
import { AnnotationBadges, Badge, PinBadge } from "../ui/badge";
import { ButtonLink } from "../ui/button";
import { Snippet } from "../ui/copy";
import { Diff } from "../ui/diff";
import { Show } from "../ui/empty";
import { Hint } from "../ui/hint";
import { Icon } from "../ui/icon";
import { Tabs } from "../ui/tabs";
import { Long, Text } from "../ui/text";
import { Try } from "../call/try";
import { type View, writeView } from "../view";
import { count } from "../words";

export function ToolDetailView({ id, view, back }: { id: string; view: View; back: string }) {
  const loaded = useLoad((signal) => get<ToolDetail>(`/tools/${encodeURIComponent(id)}${query({ ...view })}`, signal), [id, writeView(view), generation.value]);
  return (
    <article class="stack detail">
      <a class="back" href={back}><Icon name="left" /> All tools</a>
      <Show from={loaded} lines={8}>{(tool) => <Detail tool={tool} view={view} />}</Show>
    </article>
  );
}

function Detail({ tool, view }: { tool: ToolDetail; view: View }) {
  const tab = route.value.query.get("tab") ?? "try";
  const changes = tool.steps.length;
  return (
    <>
      <header class="stack tight">
        <div class="row">
          <h2 class="break"><Text text={tool.name} /></h2>
          {tool.title && tool.title !== tool.name && <span class="dim"><Text text={tool.title} /></span>}
        </div>
        <div class="row small">
          <a href={to("servers", tool.server)}><Text text={tool.server} /></a>
          <span class="dim number">{count(tool.tokens, "token")}</span>
          <AnnotationBadges annotations={tool.annotations} />
          {tool.hidden && <Badge>hidden by a rule</Badge>}
          <PinBadge pin={tool.pin} />
        </div>
        {tool.description && <p class="pre break"><Long text={tool.description} limit={700} /></p>}
      </header>
      <Findings tool={tool} />
      <Pinned tool={tool} />
      <Tabs label="Tool details" chosen={tab} choose={(next) => setQuery({ tab: next === "try" ? "" : next })} tabs={[
        { id: "try", label: "Try it", keep: true, body: () => <Try tool={tool} view={view} /> },
        { id: "definition", label: "Definition", body: () => <Definition tool={tool} /> },
        { id: "rules", label: changes ? `Rules (${changes})` : "Rules", body: () => <Rules tool={tool} /> },
      ]} />
    </>
  );
}

function Findings({ tool }: { tool: ToolDetail }) {
  const { findings } = tool;
  // What changed since it was agreed to is shown with its own.
  if (!findings || findings.length === 0 || tool.difference) return null;
  return (
    <section class="notice warn wide" aria-label="Needs review">
      <p><strong>Suspicious definition.</strong> It may be harmless; a model will read it.</p>
      {findings.map((finding) => <p key={finding} class="break"><Icon name="warn" /> <Text text={finding} /></p>)}
    </section>
  );
}

function Pinned({ tool }: { tool: ToolDetail }) {
  if (!tool.difference && tool.pin !== "new" && tool.pin !== "withheld") return null;
  const { difference } = tool;
  return (
    <section class="notice warn wide" aria-label="Changed since approval">
      <p><strong>{tool.pin === "new" ? "It was added after the lock was written." : tool.pin === "withheld" ? "It is blocked until approved." : "Its definition differs from the lock."}</strong></p>
      {difference?.warnings.map((warning) => <p key={warning}><Icon name="warn" /> <Text text={warning} /></p>)}
      {difference && difference.lines.length > 0 && <Diff lines={difference.lines} label="What changed" />}
      <ButtonLink small href={to("pins", undefined, { server: tool.server })}>Review and approve</ButtonLink>
    </section>
  );
}

function Definition({ tool }: { tool: ToolDetail }) {
  return (
    <div class="stack">
      <dl class="facts">
        <dt>Id</dt><dd class="mono"><Text text={tool.id} /></dd>
        <dt>Exposed to clients</dt><dd class="mono"><Text text={tool.name} /></dd>
        <dt>On the server</dt><dd class="mono"><Text text={tool.server_name} /></dd>
      </dl>
      <Schema title="Arguments" schema={tool.input_schema} />
      {tool.output_schema !== undefined && <Schema title="Result" schema={tool.output_schema} />}
    </div>
  );
}

function Schema({ title, schema }: { title: string; schema: JsonSchema }) {
  return (
    <section class="stack">
      <h3>{title}</h3>
      <Outline schema={schema} />
      <details>
        <summary>JSON Schema</summary>
        <Snippet label={`${title} as JSON Schema`} text={JSON.stringify(schema, null, 2)} />
      </details>
    </section>
  );
}

function Rules({ tool }: { tool: ToolDetail }) {
  return (
    <div class="stack">
      <section class="stack">
        <h3>Policy</h3>
        <p>{tool.policy ? <Hint text={tool.policy} /> : <span class="dim">No policy is set: every authenticated caller may call it.</span>}</p>
      </section>
      <section class="stack">
        <h3>Transforms</h3>
        {tool.steps.length === 0 && <p class="dim">No transforms apply. Transforms are <code>transforms</code> in the config.</p>}
        {tool.steps.map((step, at) => (
          <div key={at} class="card stack">
            <p class="row"><strong>{at + 1}.</strong> <Hint text={step.rule} /> {step.hides && <Badge tone="warn">hidden</Badge>}</p>
            {step.changes.map((change, index) => (
              <div key={index} class="change">
                <p class="label"><Text text={change.member} /></p>
                <FromTo sign="-" word="from">{change.from !== undefined && <Long text={change.from} limit={500} />}</FromTo>
                <FromTo sign="+" word="to">{change.to !== undefined && <Long text={change.to} limit={500} />}</FromTo>
              </div>
            ))}
          </div>
        ))}
      </section>
    </div>
  );
}

function FromTo({ sign, word, children }: { sign: "+" | "-"; word: string; children: ComponentChildren }) {
  return (
    <div class="diff">
      <div class={sign === "+" ? "plus" : "minus"}><span class="sign" aria-hidden="true">{sign}</span><span class="sr">{word}: </span><span class="line">{children || <em class="dim">nothing</em>}</span></div>
    </div>
  );
}
