// Calls: what is happening now, the ledger behind it, and what it all took.
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { Charts, Measures, useStats, WindowChoice } from "../calls/charts";
import { CallPage } from "../calls/detail";
import { CallList } from "../calls/list";
import { type Filter, FILTERS, GOING_ON } from "../calls/merge";
import { calls, servers } from "../live";
import { route, setQuery } from "../router";
import { useSampled } from "../ticking";
import type { CallReport } from "../types";
import { Button } from "../ui/button";
import { Page } from "../ui/page";
import { TextField } from "../ui/field";
import { Tabs } from "../ui/tabs";
import { plain } from "../words";

export function Calls({ id }: { id: string }) {
  return id ? <CallPage key={id} id={id} /> : <CallsPage />;
}

function CallsPage() {
  const [paused, setPaused] = useState(false);
  const stats = useStats();
  const { query } = route.value;
  const filter = useFilter();
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as Element;
      if (event.key !== "p" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || target.closest("input,textarea,select,dialog")) return;
      setPaused((paused) => !paused);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return (
    <Page title="Calls" wide actions={<WindowChoice stats={stats} />}>
      <Charts stats={stats} />
      <Tabs label="Calls" chosen={query.get("by") ?? "calls"} choose={(by) => setQuery({ by: by === "calls" ? "" : by })} tabs={[
        { id: "calls", label: "Live", body: () => (
          <div class="stack">
            <Filters filter={filter} paused={paused} setPaused={setPaused} />
            <CallList filter={filter} paused={paused} setPaused={setPaused} />
          </div>
        ) },
        { id: "servers", label: "By server", body: () => <Measures key="servers" stats={stats} by="servers" /> },
        { id: "tools", label: "By tool", body: () => <Measures key="tools" stats={stats} by="tools" /> },
      ]} />
    </Page>
  );
}

function useFilter(): Filter {
  const { query } = route.value;
  const words = FILTERS.map((key) => query.get(key) ?? "");
  return useMemo(() => ({ caller: words[0]!, server: words[1]!, name: words[2]!, outcome: words[3]! }), words);
}

const LABELS = { caller: "Caller", server: "Server", name: "Tool", outcome: "Outcome" };
const OUTCOMES = [GOING_ON, "ok", "tool_error", "error", "cancelled", "rejected", "not_sent", "outcome_unknown"];

function Filters({ filter, paused, setPaused }: { filter: Filter; paused: boolean; setPaused: (paused: boolean) => void }) {
  const recent = useSampled(calls, 3000);
  const seen = (of: (call: CallReport) => string | undefined) => recent.map(of).filter((word) => word !== undefined);
  const known = {
    caller: seen((call) => call.caller),
    server: [...(servers.value ?? []).map((server) => server.name), ...seen((call) => call.server)],
    name: seen((call) => call.name),
    outcome: [...OUTCOMES, ...seen((call) => call.outcome)],
  };
  const any = FILTERS.some((key) => filter[key]);
  return (
    <div class="filters calls-filters">
      {FILTERS.map((key) => <Suggested key={key} label={LABELS[key]} value={filter[key]} known={known[key]} change={(value) => setQuery({ [key]: value })} search={key === "name"} />)}
      {any && <Button kind="quiet" onClick={() => setQuery({ caller: "", server: "", name: "", outcome: "" })}>Clear</Button>}
      <Button icon={paused ? "play" : "pause"} aria-pressed={paused} title="p" onClick={() => setPaused(!paused)}>{paused ? "Resume" : "Pause"}</Button>
    </div>
  );
}

/**
 * Typed words become the filter when the field is left, a suggestion is taken, or Enter is pressed, so that half a word does
 * not empty the list; where a part of a name is enough (`search`), soon after they are typed.
 */
function Suggested({ label, value, known, change, search }: { label: string; value: string; known: string[]; change: (value: string) => void; search: boolean }) {
  const [typed, setTyped] = useState(value);
  // What comes from elsewhere is shown; our own words come back trimmed and must not undo a space.
  useEffect(() => setTyped((typed) => (typed.trim() === value ? typed : value)), [value]);
  const list = useId();
  const soon = useRef<ReturnType<typeof setTimeout>>(undefined);
  const all = [...new Set(known)].sort().slice(0, 200);
  const type = (word: string) => {
    setTyped(word);
    clearTimeout(soon.current);
    if (!word || all.includes(word)) change(word);
    else if (search) soon.current = setTimeout(() => change(word.trim()), 200);
  };
  return (
    <div>
      <TextField label={label} placeholder="any" data-search={search || undefined} list={list} value={typed} spellcheck={false} onInput={(event) => type(event.currentTarget.value)} onBlur={() => typed.trim() !== value && change(typed.trim())} onKeyDown={(event) => event.key === "Enter" && change(typed.trim())} />
      <datalist id={list}>{all.map((word) => <option key={word} value={word}>{plain(word)}</option>)}</datalist>
    </div>
  );
}
