// One call as a timeline: queued, sent, what came on the way, the end; drawn to scale, and as a list.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { calls } from "../live";
import { useLoad } from "../load";
import { route, to } from "../router";
import { useNow, useSampled } from "../ticking";
import type { CallDetail } from "../types";
import { ButtonLink } from "../ui/button";
import { Copy } from "../ui/copy";
import { Show } from "../ui/empty";
import { Page, Section } from "../ui/page";
import { Progress } from "../ui/progress";
import { Text } from "../ui/text";
import { bytes, count, duration, plain } from "../words";
import { Running } from "./list";
import { Outcome } from "./outcome";
import { type Moment, percent, sums, timeline } from "./scale";

export function CallPage({ id }: { id: string }) {
  const live = useSampled(calls, 250).find((call) => call.id === id);
  const loaded = useLoad((signal) => get<CallDetail>(`/calls/${encodeURIComponent(id)}`, signal), [id, live?.outcome]);
  const call = loaded.value && { ...loaded.value, ...live };
  const back = Object.fromEntries(route.value.query);
  // Events tell how far it is, but not each moment.
  const on = !!call && call.outcome === undefined;
  useEffect(() => {
    const timer = on ? setInterval(() => document.hidden || loaded.reload(), 1000) : undefined;
    return () => clearInterval(timer);
  }, [on]);
  return (
    <Page title={call ? plain(call.name) : "Call"} lead={<a href={to("calls", undefined, back)}>‹ all calls</a>} actions={<Copy text={id} label="Copy id" />}>
      <Show from={{ ...loaded, value: call }} lines={10}>{(call) => <Detail call={call} />}</Show>
    </Page>
  );
}

function Detail({ call }: { call: CallDetail }) {
  const on = call.outcome === undefined;
  const only = (filter: Record<string, string>) => to("calls", undefined, filter);
  return (
    <>
      <section class="card server-facts" aria-label="Facts">
        <dl class="facts">
          <dt>Outcome</dt><dd><Outcome call={call} />{call.code !== undefined && <span class="dim"> · code {call.code}</span>}</dd>
          <dt>Duration</dt><dd class="number">{on ? <Running since={call.time} /> : call.duration_us === undefined ? "–" : duration(call.duration_us)}</dd>
          <dt>Started</dt><dd class="number">{new Date(call.time).toLocaleString("en-GB")}</dd>
          <dt>Sizes</dt><dd class="number">{bytes(call.bytes_in)} of arguments, {call.bytes_out === undefined ? "no result yet" : `${bytes(call.bytes_out)} of result`}</dd>
        </dl>
        <dl class="facts">
          <dt>Caller</dt><dd><a href={only({ caller: call.caller })}><Text text={call.caller} /></a> <span class="dim">by {call.endpoint}</span></dd>
          {call.server && <><dt>Server</dt><dd><a href={to("servers", call.server)}><Text text={call.server} /></a></dd></>}
          <dt>Request</dt><dd>{call.method} · <a href={only({ server: call.server ?? "", name: call.name })}><Text text={call.name} /></a></dd>
          {call.trace && <><dt>Trace</dt><dd class="with-copy"><code>{call.trace}</code><Copy text={call.trace} /></dd></>}
          {call.digest && <><dt>Arguments</dt><dd class="with-copy"><code title={`SHA-256 ${call.digest}`}>SHA-256 {call.digest.slice(0, 16)}…</code><Copy text={call.digest} /></dd></>}
          <dt>Id</dt><dd><code>{call.id}</code></dd>
        </dl>
      </section>
      {on && <Progress value={call.progress?.progress ?? 0} total={call.progress?.total} message={call.progress?.message} />}
      <Drawn call={call} />
      {call.server && call.method === "tools/call" && <div class="row"><ButtonLink icon="tools" href={to("tools", `${call.server}.${call.name}`)}>Open the tool</ButtonLink></div>}
    </>
  );
}

const WORDS: Record<Moment["event"], string> = { queued: "queued", sent: "sent to the server", progress: "progress", log: "log line", question: "waited for a user", answer: "answered", end: "ended" };

function Drawn({ call }: { call: CallDetail }) {
  const now = useNow(call.outcome === undefined ? 500 : 0);
  const { whole, spans, marks } = timeline(call.timeline, call.duration_us, Math.max(0, now - Date.parse(call.time)) * 1000);
  if (!call.timeline.length) return <Section title="Timeline"><p class="dim">The timeline of this call is no longer stored. The details above are from the ledger.</p></Section>;
  return (
    <Section title="Timeline">
      <div class="timeline card">
        <svg class="timeline-bar" width="100%" height="34" role="img" aria-label={sums(spans).map(([what, part]) => `${what} ${duration(part * whole)}`).join(", ")}>
          {spans.map((span) => <rect key={span.what + span.from} class={span.what.replaceAll(" ", "-")} x={`${span.from * 100}%`} width={`${Math.max(0.15, (span.to - span.from) * 100)}%`} y="10" height="14" rx="2" />)}
          {marks.map(({ at, moment }, index) => <line key={index} class={`moment-mark ${moment.event}`} x1={`${at * 100}%`} x2={`${at * 100}%`} y1="4" y2="30"><title>{WORDS[moment.event]} at {duration(moment.at_us)}</title></line>)}
        </svg>
        <div class="timeline-ticks small dim number" aria-hidden="true">{[0, 0.25, 0.5, 0.75, 1].map((part) => <span key={part}>{part ? duration(part * whole) : "0"}</span>)}</div>
        <p class="chart-legend small">
          {sums(spans).map(([what, part]) => <span key={what} class={`key ${what.replaceAll(" ", "-")}`}><i aria-hidden="true" />{what} <b class="number">{duration(part * whole)}</b> <span class="dim number">{percent(part, 1)}</span></span>)}
        </p>
      </div>
      <Moments moments={call.timeline} left={call.omitted ?? 0} />
    </Section>
  );
}

const AT_ONCE = 200;

/** The first and the last of them; `left` more were not told at all. */
function Moments({ moments, left }: { moments: Moment[]; left: number }) {
  const [all, setAll] = useState(false);
  const cut = !all && moments.length > AT_ONCE;
  const middle = Math.floor((cut ? AT_ONCE : moments.length) / 2);
  const row = (moment: Moment, at: number) => (
    <li key={at}><span class="number dim">{moment.at_us ? `+${duration(moment.at_us)}` : "0"}</span><span class={`moment ${moment.event}`}>{WORDS[moment.event] ?? moment.event}</span><span class="break">{moment.detail && <Text text={moment.detail} />}</span></li>
  );
  return (
    <ol class="moments" aria-label="Events">
      {moments.slice(0, middle).map(row)}
      {cut && <li key="cut"><span /><button type="button" class="linkish" onClick={() => setAll(true)}>show {moments.length - AT_ONCE} more</button></li>}
      {left > 0 && <li key="left" class="dim"><span /><span>{count(left, "moment")} left out</span></li>}
      {moments.slice(cut ? moments.length - middle : middle).map((moment, at) => row(moment, moments.length + at))}
    </ol>
  );
}
