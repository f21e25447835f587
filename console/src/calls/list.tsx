// The live list: calls that go on with their bars, then those that ended; rows stay put while they are looked at.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, query, type ApiError } from "../api";
import { toApiError } from "../load";
import { calls, link, missed, RECENT } from "../live";
import { go, to } from "../router";
import { useNow, useSampled } from "../ticking";
import type { CallReport } from "../types";
import { Button } from "../ui/button";
import { Empty, Failure, Skeleton } from "../ui/empty";
import { Progress } from "../ui/progress";
import { Text } from "../ui/text";
import { bytes, clock, count, duration } from "../words";
import { arrange, type Filter, fits, merge } from "./merge";
import { Outcome } from "./outcome";

const PAGE = 60;

/** The most calls that go on which are shown; there may be thousands. */
const MOST_ON = 40;

interface Ledger { calls: CallReport[]; more?: string; error?: ApiError; loading: boolean; load: () => void; reload: () => void }

/** What the ledger has, page by page; read anew when the filter changes and after a lost connection. */
function useLedger(filter: Filter): Ledger {
  const [state, set] = useState<Omit<Ledger, "load" | "reload">>({ calls: [], loading: true });
  const turn = useRef(0);
  const read = (before?: string) => {
    const mine = ++turn.current;
    set((old) => ({ ...(before ? old : { calls: old.calls }), error: undefined, loading: true }));
    get<{ calls: CallReport[]; more?: string }>(`/calls${query({ limit: PAGE, ...filter, before })}`).then(
      (page) => mine === turn.current && set((old) => ({ calls: before ? merge(old.calls, page.calls) : page.calls, more: page.more, loading: false })),
      (error) => mine === turn.current && set((old) => ({ ...old, error: toApiError(error), loading: false })),
    );
  };
  const open = link.value === "open";
  useEffect(() => {
    if (open) read();
  }, [filter.caller, filter.server, filter.name, filter.outcome, open, missed.value]);
  return { ...state, load: () => read(state.more), reload: () => read() };
}

export function CallList({ filter, paused, setPaused }: { filter: Filter; paused: boolean; setPaused: (paused: boolean) => void }) {
  const ledger = useLedger(filter);
  const live = useSampled(calls, 250);
  const all = useMemo(() => merge(ledger.calls, live).filter((call) => fits(call, filter)), [ledger.calls, live, filter]);
  const [over, setOver] = useState(false);
  const hold = paused || over;
  const held = useRef<{ on: string[]; ended: string[] } | undefined>(undefined);
  if (!hold) held.current = undefined;
  const shown = arrange(all, held.current);
  if (hold) held.current = { on: shown.on.map((call) => call.id), ended: shown.ended.map((call) => call.id) };
  // More came live than is kept: what fell out is read from the ledger.
  const gap = !hold && !ledger.loading && live.length >= RECENT && !ledger.calls.some((call) => call.time >= live.at(-1)!.time);
  useEffect(() => {
    const timer = gap ? setTimeout(ledger.reload, 3000) : undefined;
    return () => clearTimeout(timer);
  }, [gap]);
  const list = useRef<HTMLDivElement>(null);
  const rest = () => setOver(!!list.current?.contains(document.activeElement) && document.activeElement !== list.current);
  const nothing = !shown.on.length && !shown.ended.length;
  return (
    <div class="stack">
      <p class="calls-hold small" role="status">
        {hold ? <><span aria-hidden="true">❚❚</span> {paused ? "paused" : "paused while you scroll"}{shown.fresh > 0 && ` · ${count(shown.fresh, "new call")}`}{paused && <> · <button type="button" class="linkish" onClick={() => setPaused(false)}>resume</button></>}</> : <><span class="beat" aria-hidden="true">●</span> live</>}
      </p>
      {ledger.error && <Failure error={ledger.error} retry={ledger.load} />}
      <div ref={list} onPointerEnter={(event) => event.pointerType === "mouse" && setOver(true)} onPointerLeave={rest} onFocusIn={() => setOver(true)} onFocusOut={(event) => list.current?.contains(event.relatedTarget as Node) || setOver(!!list.current?.matches(":hover"))} onKeyDown={step}>
        {nothing ? (ledger.loading && !ledger.calls.length ? <Skeleton lines={8} /> : ledger.error ? null : <Nothing filtered={Object.values(filter).some(Boolean)} />) : (
          <ul class="calls" aria-label="Calls">
            {shown.on.slice(0, MOST_ON).map((call) => <Row key={call.id} call={call} />)}
            {shown.on.length > MOST_ON && <li class="call-more dim" key="more">and {count(shown.on.length - MOST_ON, "call")} more in progress</li>}
            {shown.ended.map((call) => <Row key={call.id} call={call} />)}
          </ul>
        )}
      </div>
      {ledger.more && <div class="row"><Button busy={ledger.loading} onClick={ledger.load}>Load more</Button></div>}
    </div>
  );
}

/** Arrows move from row to row. */
function step(event: KeyboardEvent) {
  const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (!by) return;
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(".call-name")];
  const next = links[links.indexOf(document.activeElement as HTMLElement) + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

/** Drawn again only when the call changed. */
function Row({ call }: { call: CallReport }) {
  const { search } = location;
  return useMemo(() => <RowView call={call} search={search} />, [call, search]);
}

function RowView({ call, search }: { call: CallReport; search: string }) {
  const on = call.outcome === undefined;
  const href = to("calls", call.id) + search;
  return (
    <li class={on ? "call on" : "call"} onClick={(event) => (event.target as Element).closest("a") || getSelection()?.toString() || go(href)}>
      <time class="dim number small" dateTime={call.time} title={new Date(call.time).toLocaleString("en-GB")}>{clock(call.time)}</time>
      <span class="call-what">
        <a class="call-name" href={href}><Text text={call.name} /></a>
        <span class="dim small">{call.server ? <Text text={call.server} /> : call.method}</span>
      </span>
      <span class="call-who small dim"><Text text={call.caller} /> <span>by {call.endpoint}</span></span>
      <span class="call-outcome"><Outcome call={call} /></span>
      <span class="call-size small dim number" title="arguments → result">{bytes(call.bytes_in)} → {call.bytes_out === undefined ? "…" : bytes(call.bytes_out)}</span>
      <span class="call-took number">{on ? <Running since={call.time} /> : call.duration_us === undefined ? "–" : duration(call.duration_us)}</span>
      {on && <div class="call-bar"><Progress value={call.progress?.progress ?? 0} total={call.progress?.total} message={call.progress?.message} label={`Progress of ${call.name}`} /></div>}
    </li>
  );
}

/** How long it has gone on. */
export function Running({ since }: { since: string }) {
  const now = useNow(500);
  return <>{duration(Math.max(0, Math.floor((now - Date.parse(since)) / 100) * 100_000))}</>;
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No matching calls">Filters match the full name of a caller, server or outcome. <a href={to("calls")}>Show all calls</a></Empty>;
  return <Empty title="No calls yet">Calls of clients, agents and this console appear here. <a href={to("connect")}>Connect a client</a>, or <a href={to("tools")}>call a tool from here</a>.</Empty>;
}
