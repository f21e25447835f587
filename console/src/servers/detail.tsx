// One server: everything known of it, what it said on stderr, and what can be done with it.
import { useEffect, useRef, useState } from "preact/hooks";
import { gateway } from "../base";
import { del, get, post, type ApiError } from "../api";
import { toApiError, useLoad } from "../load";
import { servers, session } from "../live";
import { isOperator } from "../rights";
import { go, to } from "../router";
import { useNow } from "../ticking";
import type { ServerDetail } from "../types";
import { StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Copy, Snippet } from "../ui/copy";
import { Confirm } from "../ui/dialog";
import { Failure, Show } from "../ui/empty";
import { Hint } from "../ui/hint";
import { OperatorNote } from "../ui/operator-note";
import { Page, Section } from "../ui/page";
import { Long, Text } from "../ui/text";
import { say } from "../ui/toast";
import { ago, count, plain } from "../words";
import { Command, Names } from "./command";
import { Latency, Talks } from "./parts";

export function ServerPage({ name }: { name: string }) {
  // What changes by itself comes by the events; the rest is read again whenever that changed.
  const live = servers.value?.find((server) => server.name === name);
  const loaded = useLoad((signal) => get<ServerDetail>(`/servers/${encodeURIComponent(name)}`, signal), [name, live?.state, live?.since, live?.restarts, live?.error]);
  const server = loaded.value && { ...loaded.value, ...live };
  useEffect(() => {
    const timer = setInterval(() => document.hidden || loaded.reload(), 5000);
    return () => clearInterval(timer);
  }, []);
  return (
    <Page title={plain(name)} lead={<a href={to("servers")}>‹ all servers</a>} actions={server && <Actions server={server} />}>
      <Show from={{ ...loaded, value: server }} lines={10}>{(server) => <Detail server={server} />}</Show>
    </Page>
  );
}

function Detail({ server }: { server: ServerDetail }) {
  useNow(10_000);
  const from = { server: server.name };
  const endpoint = `${gateway()}/servers/${encodeURIComponent(server.name)}/mcp`;
  return (
    <>
      {server.error && <Failure error={{ error: server.error, hint: server.hint }} />}
      <section class="card server-facts" aria-label="State">
        <dl class="facts">
          <dt>State</dt><dd><StateBadge state={server.state} /> <span class="dim small">since {ago(server.since)}</span></dd>
          <dt>Server name</dt><dd>{server.title ? <Text text={server.title} /> : <span class="dim">unknown</span>}</dd>
          <dt>Protocol</dt><dd><Talks server={server} /></dd>
          <dt>Restarts</dt><dd class="number">{server.restarts}</dd>
          <dt>Definitions</dt><dd class="number">{count(server.tokens, "token")}</dd>
        </dl>
        <dl class="facts">
          <dt>Catalog</dt>
          <dd class="links">
            <a href={to("tools", undefined, from)}>{count(server.tools, "tool")}</a>
            <a href={to("prompts", undefined, from)}>{count(server.prompts, "prompt")}</a>
            <a href={to("resources", undefined, from)}>{count(server.resources, "resource")}{server.templates > 0 && `, ${count(server.templates, "template")}`}</a>
          </dd>
          <dt>Calls</dt><dd class="links"><a href={to("calls", undefined, from)}>{count(server.calls, "call")} in the last hour</a><span class={server.errors ? "is-bad" : "dim"}>{count(server.errors, "error")}</span></dd>
          <dt>Latency</dt><dd><Latency server={server} /></dd>
        </dl>
      </section>
      {(server.command || server.url) && (
        <Section title={server.url ? "URL" : "Command"} actions={<Copy text={server.url ?? JSON.stringify(server.command)} label={server.url ? "Copy" : "Copy as JSON"} />}>
          <Command command={server.command} folder={server.cwd} url={server.url} />
          <dl class="facts">
            {server.command && <><dt>Environment variables</dt><dd><Names names={server.env} none="only the default ones" /></dd></>}
            {server.url && <><dt>Headers</dt><dd><Names names={server.headers} none="none" /></dd></>}
          </dl>
        </Section>
      )}
      <Section title="Endpoint of this server">
        <p class="dim">For clients that need only this server; same token and rules. <a href={to("connect")}>Connect a client</a></p>
        <Snippet label="Endpoint" text={endpoint} />
      </Section>
      {server.transport === "stdio" && server.stderr !== undefined && <Stderr text={server.stderr} />}
      {server.instructions && (
        <Section title="Instructions">
          <p class="dim">Written by the server, unverified.</p>
          <div class="block wrap" tabIndex={0} role="region" aria-label="Instructions"><Long text={server.instructions} limit={2000} /></div>
        </Section>
      )}
    </>
  );
}

function Stderr({ text }: { text: string }) {
  const block = useRef<HTMLPreElement>(null);
  const following = useRef(true);
  useEffect(() => {
    const element = block.current;
    if (element && following.current) element.scrollTop = element.scrollHeight;
  }, [text]);
  // Who scrolled up reads on in peace.
  const look = ({ currentTarget: element }: { currentTarget: HTMLElement }) => {
    following.current = element.scrollHeight - element.scrollTop - element.clientHeight < 30;
  };
  return (
    <Section title="Standard error" actions={text && <Copy text={text} />}>
      {text ? <pre ref={block} onScroll={look} class="block wrap stderr" tabIndex={0} role="region" aria-label="Last lines of standard error"><Text text={text} /></pre> : <p class="dim">No output.</p>}
    </Section>
  );
}

type Act = "connect" | "disconnect" | "restart" | "disable";

const DONE: Record<Act, (name: string) => string> = {
  connect: (name) => `Connecting to ${name}`,
  disconnect: (name) => `${name} disconnected; the next call reconnects`,
  restart: (name) => `Restarting ${name}`,
  disable: (name) => `${name} disabled; its tools are no longer exposed`,
};

const ABOUT: Record<Act, string> = {
  connect: "Start or connect to the server and read its listings",
  disconnect: "Wait for calls to end, then close the connection; a local process is stopped",
  restart: "Disconnect, then reconnect",
  disable: "Disconnect and hide its tools until it is connected again",
};

function fitting(server: ServerDetail): Act[] {
  switch (server.state) {
    case "disabled": return ["connect"];
    case "configured": case "known": return ["connect", "disable"];
    case "failed": case "needs auth": return ["connect", "disable"];
    default: return ["restart", "disconnect", "disable"];
  }
}

function Actions({ server }: { server: ServerDetail }) {
  const [busy, setBusy] = useState<Act | undefined>(undefined);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const [removing, setRemoving] = useState(false);
  if (!isOperator.value) return <OperatorNote />;
  if (server.transport === "local") return <p class="dim small">Built in: always available.</p>;
  const act = async (what: Act) => {
    setBusy(what);
    setError(undefined);
    try {
      await post(`/servers/${encodeURIComponent(server.name)}/${what}`);
      say(DONE[what](plain(server.name)));
    } catch (problem) {
      setError(toApiError(problem));
    }
    setBusy(undefined);
  };
  const words = (what: Act) => (what === "connect" && server.state === "failed" ? "Retry" : what === "connect" && server.state === "disabled" ? "Enable and connect" : what[0]!.toUpperCase() + what.slice(1));
  return (
    <div class="stack tight">
      <div class="row">
        {fitting(server).map((what) => <Button key={what} title={ABOUT[what]} busy={busy === what} disabled={!!busy} onClick={() => act(what)}>{words(what)}</Button>)}
        {server.removable && <Button onClick={() => setRemoving(true)}>Remove…</Button>}
      </div>
      {!server.removable && session.value?.change_refusal_reason && <p class="small dim">Cannot be removed here: <Hint text={session.value.change_refusal_reason} /></p>}
      {error && <Failure error={error} />}
      {removing && <Remove server={server} close={() => setRemoving(false)} />}
    </div>
  );
}

function Remove({ server, close }: { server: ServerDetail; close: () => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const remove = async () => {
    setBusy(true);
    try {
      await del(`/servers/${encodeURIComponent(server.name)}`);
      close();
      go(to("servers"), "replace");
      say(`${plain(server.name)} is removed`);
    } catch (problem) {
      setError(toApiError(problem));
      setBusy(false);
    }
  };
  return (
    <Confirm title={`Remove ${plain(server.name)}?`} action="Remove" danger busy={busy} close={close} confirm={remove}>
      <p>It is disconnected, {count(server.tools, "tool")} {server.tools === 1 ? "is" : "are"} no longer exposed, and its entry is removed from {session.value?.config ? <code>{session.value.config}</code> : "the config file"}. To restore it, add it again.</p>
      {error && <Failure error={error} />}
    </Confirm>
  );
}
