// Servers: what is connected and how it does; the start page, so a slim summary stands on top.
import { going, servers, session, pendingCount } from "../live";
import { isOperator } from "../rights";
import { go, route, setQuery, to } from "../router";
import { AddServer } from "../servers/add";
import { ServerPage } from "../servers/detail";
import { Latency, Offers, Talks } from "../servers/parts";
import type { ProblemReport, ServerReport } from "../types";
import { StateBadge } from "../ui/badge";
import { Button, ButtonLink } from "../ui/button";
import { Snippet } from "../ui/copy";
import { Empty, Problems, Skeleton } from "../ui/empty";
import { Hint } from "../ui/hint";
import { OperatorNote } from "../ui/operator-note";
import { Page } from "../ui/page";
import { Text } from "../ui/text";
import { count } from "../words";

export function Servers({ id }: { id: string }) {
  return id ? <ServerPage key={id} name={id} /> : <ServerList />;
}

function ServerList() {
  const list = servers.value;
  const adding = isOperator.value && route.value.query.has("add");
  return (
    <Page title="Servers" actions={isOperator.value ? <Button kind="primary" icon="plus" onClick={() => setQuery({ add: "form" })}>Add servers</Button> : <OperatorNote />}>
      <Summary list={list} />
      <ConfigProblems problems={session.value?.problems ?? []} />
      {!list ? <Skeleton lines={8} /> : list.length ? (
        <ul class="servers" aria-label="Servers">{list.map((server) => <Row key={server.name} server={server} />)}</ul>
      ) : <First />}
      {adding && <AddServer close={() => setQuery({ add: "" })} />}
    </Page>
  );
}

function Summary({ list }: { list?: ServerReport[] }) {
  const sum = (of: (server: ServerReport) => number) => list?.reduce((whole, server) => whole + of(server), 0) ?? 0;
  const ready = list?.filter((server) => server.state === "ready").length ?? 0;
  const wanted = list?.filter((server) => server.state !== "disabled").length ?? 0;
  const hour = sum((server) => server.calls);
  const errors = sum((server) => server.errors);
  return (
    <dl class="summary">
      <Fact label="servers ready" value={list && `${ready} of ${wanted}`} />
      <Fact label="tools" value={list && sum((server) => server.tools).toLocaleString("en")} href={to("tools")} />
      <Fact label="tokens of all definitions" value={list && sum((server) => server.tokens).toLocaleString("en")} href={to("profiles")} />
      <Fact label={`calls in the last hour${errors ? `, ${count(errors, "error")}` : ""}`} value={list && hour.toLocaleString("en")} href={to("calls")} />
      <Fact label="calls in progress" value={list && String(going.value)} href={to("calls")} />
      <Fact label="approvals pending" value={list && String(pendingCount.value)} href={to("approvals")} strong={pendingCount.value > 0} />
    </dl>
  );
}

function Fact({ label, value, href, strong }: { label: string; value?: string; href?: string; strong?: boolean }) {
  return (
    <div class={strong ? "strong" : undefined}>
      <dt>{href ? <a href={href}>{label}</a> : label}</dt>
      <dd class="number">{value ?? "–"}</dd>
    </div>
  );
}

function ConfigProblems({ problems }: { problems: ProblemReport[] }) {
  if (!problems.length) return null;
  const errors = problems.filter((problem) => problem.severity === "error").length;
  const words = [errors && count(errors, "error"), problems.length - errors && count(problems.length - errors, "remark")].filter(Boolean).join(" and ");
  return (
    <details class="config-problems" open={errors > 0}>
      <summary>{words} about the config{session.value?.config && <span class="dim"> · {session.value.config}</span>}</summary>
      <Problems problems={problems} />
    </details>
  );
}

function Row({ server }: { server: ServerReport }) {
  const href = to("servers", server.name);
  const open = (event: MouseEvent) => {
    if (!(event.target as Element).closest("a,button") && !getSelection()?.toString()) go(href);
  };
  return (
    <li class="server" onClick={open}>
      <div class="server-name">
        <a href={href}><Text text={server.name} /></a>
        <span class="small dim break">{server.title && server.title !== server.name ? <Text text={server.title} /> : "\u00a0"}</span>
      </div>
      <div class="server-state">
        <StateBadge state={server.state} />
        <span class="small dim"><Talks server={server} /></span>
      </div>
      <div class="server-offers">
        <Offers server={server} />
        <span class="small dim number">{count(server.tokens, "token")}{server.restarts > 0 && ` · ${count(server.restarts, "restart")}`}</span>
      </div>
      <Latency server={server} />
      <div class="server-calls number">
        <span>{server.calls ? count(server.calls, "call") : <span class="dim">no calls</span>}</span>
        <span class={server.errors ? "small is-bad" : "small dim"}>{server.errors ? count(server.errors, "error") : "in the last hour"}</span>
      </div>
      {server.error && (
        <p class={server.state === "failed" ? "server-error is-bad" : "server-error is-warn"}>
          <Hint text={server.error} />{server.hint && <span class="dim"> — <Hint text={server.hint} /></span>}
        </p>
      )}
    </li>
  );
}

function First() {
  const fixed = session.value?.can_change === false;
  return (
    <Empty title="No servers">
      <div class="stack first-steps">
        {fixed ? <p>Servers cannot be added here: <Hint text={session.value?.change_refusal_reason ?? "the gateway does not allow it"} /></p> : <p>Add one from a form, or paste the <code>mcp.json</code> of another MCP client. Commands are shown before they run.</p>}
        {!fixed && <div class="row centre"><Button kind="primary" icon="plus" onClick={() => setQuery({ add: "form" })}>Add from a form</Button><ButtonLink href={to("servers", undefined, { add: "paste" })}>Paste an mcp.json</ButtonLink></div>}
        <p>{fixed ? "Add it to the gateway's config file; changes are reloaded automatically:" : <>Or add it to {session.value?.config ? <code>{session.value.config}</code> : "the config"}; changes are reloaded automatically:</>}</p>
        <Snippet label="Config example" text={'[mcp.everything]\ncommand = ["npx", "-y", "@modelcontextprotocol/server-everything"]'} />
      </div>
    </Empty>
  );
}
