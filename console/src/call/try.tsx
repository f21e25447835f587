// Trying a tool: its form, the call as it happens, and what came of it.
import { useEffect, useRef, useState } from "preact/hooks";
import { gateway } from "../base";
import { Leaf, Tree } from "../content/tree";
import { Result } from "../content/content";
import { pendingRequests, session } from "../live";
import { to } from "../router";
import { SchemaForm } from "../schema/form";
import { isObject } from "../schema/model";
import type { PendingRequest, ToolDetail } from "../types";
import { Button } from "../ui/button";
import { Snippet } from "../ui/copy";
import { Progress } from "../ui/progress";
import { PendingRequestCard } from "../ui/pending-request";
import { Tabs } from "../ui/tabs";
import { Text } from "../ui/text";
import { type View, writeView } from "../view";
import { bytes, count, duration } from "../words";
import { type Run, useCall } from "./run";
import { asCommand, asCurl, asRust } from "./snippets";

export function Try({ tool, view }: { tool: ToolDetail; view: View }) {
  const [given, setGiven] = useState<unknown>({});
  const [wrong, setWrong] = useState(0);
  const [strict, setStrict] = useState(false);
  const { run, start, cancel, answered } = useCall();
  const on = run?.state === "on";
  const call = () => {
    setStrict(true);
    if (!wrong && !on) start(tool.id, given ?? {}, view);
  };
  return (
    <div class="stack">
      <form class="stack" noValidate onSubmit={(event) => {
        event.preventDefault();
        call();
      }} onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          call();
        }
      }}>
        <SchemaForm schema={tool.input_schema} strict={strict} change={(next, problems) => {
          setGiven(next);
          setWrong(problems.length);
        }} />
        <div class="row">
          <Button kind="primary" type="submit" icon="play" disabled={on}>Call</Button>
          <Button icon="stop" disabled={!on} onClick={cancel}>Cancel</Button>
          {run && <Elapsed run={run} />}
        </div>
      </form>
      {run && <Happening run={run} tool={tool} answered={answered} />}
      <CopyAs tool={tool} view={view} given={isObject(given) ? given : {}} />
    </div>
  );
}

/** How long it has taken, ten times a second while it goes on. */
function Elapsed({ run }: { run: Run }) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (run.state !== "on") return undefined;
    const timer = setInterval(() => tick((n) => n + 1), 100);
    return () => clearInterval(timer);
  }, [run.state]);
  const took = duration(((run.ended ?? performance.now()) - run.begun) * 1000);
  return <span class="dim number">{took}</span>;
}

function outcome({ state, end }: Run): [string, string] {
  if (state === "on") return ["accent", "Calling…"];
  if (state === "cancelled") return ["warn", "Cancelled"];
  if (end?.ok) return ["good", "Completed"];
  return ["bad", end?.error ? "Failed" : "Tool error"];
}

function Happening({ run, tool, answered }: { run: Run; tool: ToolDetail; answered: (id: string) => void }) {
  const [tone, words] = outcome(run);
  const { end } = run;
  const stillAsked = useStillAsked(run.requests);
  return (
    <section class="happening stack" aria-label="The call">
      <div class="row spread">
        <p role="status"><span class={`state ${tone}`}>{words}</span></p>
        <span class="row small dim number">
          {end && end.duration_us > 0 && <span>{duration(end.duration_us)}</span>}
          {end && end.bytes > 0 && <span>{bytes(end.bytes)}</span>}
          {run.id && <a href={to("calls", run.id)}>Open in Calls</a>}
        </span>
      </div>
      {run.state === "on" && <Progress value={run.progress?.progress ?? 0} total={run.progress?.total} message={run.progress?.message} label={`Progress of ${tool.name}`} />}
      {stillAsked.map((request) => <PendingRequestCard key={request.id} request={request} done={() => answered(request.id)} />)}
      {run.logs.length > 0 && <Logs run={run} />}
      {run.state === "cancelled" && <p class="dim">The server was notified. Part of the work may be done.</p>}
      {end && <Result end={end} server={tool.server} />}
    </section>
  );
}

/** Without those that were answered elsewhere: they were among all that wait, and are no more. */
function useStillAsked(asked: PendingRequest[]): PendingRequest[] {
  const seen = useRef(new Set<string>());
  const waiting = new Set(pendingRequests.value.map((request) => request.id));
  for (const { id } of asked) if (waiting.has(id)) seen.current.add(id);
  return asked.filter(({ id }) => waiting.has(id) || !seen.current.has(id));
}

function Logs({ run }: { run: Run }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [run.logs.length]);
  return (
    <details open={run.state === "on" || run.logs.length <= 5}>
      <summary>{count(run.logs.length + run.dropped, "log line")}</summary>
      <div class="logs" ref={box} role="log" tabIndex={0} aria-label="Log lines">
        {run.dropped > 0 && <p class="dim">{run.dropped} earlier lines are not shown</p>}
        {run.logs.map((line, at) => (
          <div key={run.dropped + at} class="log-line">
            <span class="dim number">{duration(line.at * 1000)}</span>
            <span class={`level ${line.level ?? ""}`}>{line.level && <Text text={line.level} />}</span>
            <span class="break">{line.logger && <span class="dim"><Text text={line.logger} /> </span>}{typeof line.data === "string" ? <Text text={line.data.slice(0, 4000)} /> : typeof line.data === "object" && line.data ? <Tree value={line.data} open={1} /> : <Leaf value={line.data} />}</span>
          </div>
        ))}
      </div>
    </details>
  );
}

function CopyAs({ tool, view, given }: { tool: ToolDetail; view: View; given: Record<string, unknown> }) {
  const [chosen, choose] = useState("shell");
  const tokened = session.value?.protected ?? true;
  return (
    <details class="copy-as">
      <summary>Copy call</summary>
      <Tabs label="Copy as" chosen={chosen} choose={choose} tabs={[
        { id: "shell", label: "consort call", body: () => <Snippet label="consort call" text={asCommand(tool, given, view)} /> },
        { id: "curl", label: "curl", body: () => <><Snippet label="curl" text={asCurl(tool, given, gateway() + (session.value?.endpoint ?? "/mcp"), tokened, view)} />{tokened && <p class="help">Replace TOKEN with the gateway's token.</p>}</> },
        // A hub has no views: those are of the gateway.
        ...(writeView(view) ? [] : [{ id: "rust", label: "Rust", body: () => <Snippet label="Rust" text={asRust(tool, given)} /> }]),
      ]} />
    </details>
  );
}
