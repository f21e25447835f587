// Chat: talk to an agent, watch what it does, answer what it asks; past conversations at the side.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, type ApiError } from "../api";
import { Composer } from "../chat/composer";
import { useEnd } from "../chat/end";
import { useConversation } from "../chat/follow";
import { Past } from "../chat/past";
import { canGoOn } from "../chat/conversation";
import { TalkView } from "../chat/view";
import { conversation, pendingRequests } from "../live";
import { toApiError, useLoad } from "../load";
import { go, to } from "../router";
import type { AgentListing, ConversationSummary } from "../types";
import { Badge } from "../ui/badge";
import { Button, ButtonLink } from "../ui/button";
import { Snippet } from "../ui/copy";
import { Empty, Failure, Show, Skeleton } from "../ui/empty";
import { Select } from "../ui/field";
import { Page } from "../ui/page";
import { Text } from "../ui/text";
import { say } from "../ui/toast";
import { count, plain } from "../words";

export function Chat({ id }: { id: string }) {
  const agents = useLoad((signal) => get<AgentListing[]>("/agents", signal), []);
  const past = useLoad((signal) => get<ConversationSummary[]>("/conversations", signal), [conversation.value, id]);
  return (
    <div class={id ? "chat chosen" : "chat"}>
      <aside class="chat-side" aria-label="Past conversations">
        <div class="row spread"><h2>Conversations</h2>{id && <ButtonLink small icon="plus" href={to("chat")}>New</ButtonLink>}</div>
        <Past from={past} chosen={id} />
      </aside>
      <div class="chat-main">
        {id ? <Talking key={id} id={id} agents={agents.value ?? []} /> : <Page title="Chat"><Show from={agents} lines={5}>{(list) => (list.length ? <Begin agents={list} /> : <NoAgent />)}</Show></Page>}
      </div>
    </div>
  );
}

/** Whoever was chosen last, else the default, else the first. */
let last = "";

function AgentChoice({ agents, chosen, choose, disabled, none }: { agents: AgentListing[]; chosen: string; choose: (name: string) => void; disabled?: boolean; none?: string }) {
  const options = agents.map((agent) => ({ value: agent.name, label: agent.scripted ? `${plain(agent.name)} (scripted)` : plain(agent.name) }));
  return <Select label="Agent" hideLabel value={chosen} disabled={disabled} options={none ? [{ value: "", label: none }, ...options] : options} onChange={(event) => choose(event.currentTarget.value)} />;
}

function AboutAgent({ agent }: { agent: AgentListing | undefined }) {
  if (!agent) return null;
  return <span class="small dim break">{agent.scripted && <Badge tone="warn" title="scripted: no model is used">scripted</Badge>} <Text text={agent.model} /> · {count(agent.tools, "tool")}{agent.profile && <> of <Text text={agent.profile} /></>}</span>;
}

function Begin({ agents }: { agents: AgentListing[] }) {
  const [name, setName] = useState(() => agents.find((agent) => agent.name === last)?.name ?? agents.find((agent) => agent.default)?.name ?? agents[0]!.name);
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const agent = agents.find((agent) => agent.name === name);
  const send = async () => {
    setBusy(true);
    last = name;
    try {
      const { id } = await post<{ id: string }>("/conversations", { agent: name, text });
      go(to("chat", id));
    } catch (problem) {
      setError(toApiError(problem));
      setBusy(false);
    }
  };
  return (
    <div class="stack begin">
      <p class="dim">{agent?.description ? <Text text={agent.description} /> : "Send a message to an agent. Tool calls and approval requests are shown in the conversation."}</p>
      {error && <Failure error={error} />}
      <Composer text={text} change={setText} send={send} busy={busy}>
        <AgentChoice agents={agents} chosen={name} choose={setName} />
        <AboutAgent agent={agent} />
      </Composer>
      <p class="small dim"><kbd>Enter</kbd> sends, <kbd>Shift</kbd> <kbd>Enter</kbd> is a new line.</p>
    </div>
  );
}

function Talking({ id, agents }: { id: string; agents: AgentListing[] }) {
  const { talk, detail, error, again, said } = useConversation(id);
  const [text, setText] = useState("");
  const [name, setName] = useState<string | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const [stopping, setStopping] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | undefined>(undefined);
  const asked = pendingRequests.value.filter((request) => request.conversation === id).length;
  const { away, toEnd } = useEnd(`${asked}`.concat(String(useCount(talk))), id);
  useEffect(() => {
    if (!talk.running) setStopping(false);
  }, [talk.running]);
  // Where nobody answered before, somebody must be named.
  const first = detail && !detail.agent ? (agents.find((agent) => agent.default) ?? agents[0])?.name : undefined;
  const chosen = name ?? first ?? agents.find((agent) => agent.name === detail?.agent)?.name ?? "";
  const agent = agents.find((one) => one.name === chosen);
  const attempt = async (what: () => Promise<void>) => {
    setBusy(true);
    setRefusal(undefined);
    try {
      await what();
    } catch (problem) {
      setRefusal(toApiError(problem));
    }
    setBusy(false);
  };
  const path = `/conversations/${encodeURIComponent(id)}`;
  const more = (text?: string) => attempt(async () => {
    await post(path, { text, agent: (name ?? first) || undefined });
    if (text !== undefined) {
      said(text);
      setText("");
    }
    toEnd();
    again();
  });
  const stop = () => attempt(async () => {
    setStopping(true);
    await post(`${path}/stop`);
  });
  const fork = (at: number) => attempt(async () => {
    const made = await post<{ id: string }>(`${path}/fork`, { at });
    say("Copied; the original is unchanged");
    go(to("chat", made.id));
  });
  return (
    <>
      <Page title={detail ? plain(detail.title) || "Chat" : "Chat"} lead={<span class="row"><a class="chat-back" href={to("chat")}>‹ all conversations</a>{detail && <span class="small number">{detail.agent && <Text text={detail.agent} />}{detail.input > 0 && ` · ${detail.input.toLocaleString("en")} tokens in, ${detail.output.toLocaleString("en")} out`}</span>}</span>}>
        {!detail && !error ? <Skeleton lines={8} /> : <TalkView talk={talk} id={id} fork={fork} goOn={canGoOn(talk, detail?.state) && !asked ? () => more() : undefined} />}
        {error && <Failure error={error} retry={again} />}
        {refusal && <Failure error={refusal} />}
      </Page>
      <div class="chat-foot">
        {away && <Button class="to-end" small icon="down" onClick={toEnd}>Scroll to end</Button>}
        <p class="sr" role="status">{talk.running ? "The agent is running" : talk.report ? "The agent has finished" : ""}</p>
        <Composer text={text} change={setText} send={() => more(text)} stop={talk.running ? stop : undefined} stopping={stopping} busy={busy}>
          {agents.length > 0 && <AgentChoice agents={agents} none={agent ? undefined : "as before"} chosen={chosen} choose={setName} disabled={talk.running} />}
          <AboutAgent agent={agent} />
        </Composer>
      </div>
    </>
  );
}

/** A number that is another one whenever the value is another one. */
function useCount(value: unknown): number {
  const state = useRef({ value, count: 0 });
  if (state.current.value !== value) state.current = { value, count: state.current.count + 1 };
  return state.current.count;
}

const LINES = `[consort.agents.researcher]
model = "anthropic:claude-sonnet-5-5"
description = "Finds and summarizes papers."
instructions = "Name your sources. Answer in at most ten sentences."`;

function NoAgent() {
  return (
    <Empty title="No agents">
      <div class="stack first-steps">
        <p>An agent is a model with instructions, tools and limits, under a name. Write one into the config; the gateway takes it over:</p>
        <Snippet label="Config example" text={LINES} />
        <p>The provider requires an API key in the gateway's environment, such as <code>ANTHROPIC_API_KEY</code>. An agent whose model cannot be used is omitted with a warning: <code>consort check</code> shows the reason.</p>
        <p>In a terminal, without an agent:</p>
        <Snippet label="Command" text="consort chat --model anthropic:claude-sonnet-5-5" />
      </div>
    </Empty>
  );
}
