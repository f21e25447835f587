// What calls took: rate, errors and latency over time, and a table by server and by tool.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { link } from "../live";
import { useLoad, type Loaded } from "../load";
import { route, setQuery, to } from "../router";
import type { CallTotals, CallStatistics } from "../types";
import { IconButton } from "../ui/button";
import { Chart } from "../ui/chart";
import { Empty, Show } from "../ui/empty";
import { Select } from "../ui/field";
import { Text } from "../ui/text";
import { count, duration } from "../words";
import { percent } from "./scale";

const EVERY = 10_000;
const WINDOWS = [["15", "15 minutes"], ["60", "hour"], ["360", "6 hours"], ["1440", "24 hours"]] as const;

/** The numbers of the window that the address names; read again every 10 s while they can be seen. */
export function useStats(): Loaded<CallStatistics> {
  const minutes = WINDOWS.find(([value]) => value === route.value.query.get("window"))?.[0] ?? "60";
  const open = link.value === "open";
  const stats = useLoad((signal) => get<CallStatistics>(`/stats?minutes=${minutes}`, signal), [minutes, open]);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || stats.reload(), EVERY);
    return () => clearInterval(timer);
  }, [stats.reload]);
  return stats;
}

export function WindowChoice({ stats }: { stats: Loaded<CallStatistics> }) {
  return (
    <div class="row">
      <Select label="Time range" hideLabel value={route.value.query.get("window") ?? "60"} options={WINDOWS.map(([value, label]) => ({ value, label: `last ${label}` }))} onChange={(event) => setQuery({ window: event.currentTarget.value === "60" ? "" : event.currentTarget.value })} />
      <IconButton icon="again" label="Refresh charts" onClick={stats.reload} />
    </div>
  );
}

export function Charts({ stats }: { stats: Loaded<CallStatistics> }) {
  return <Show from={stats} lines={7}>{(value) => <Both stats={value} />}</Show>;
}

function Both({ stats }: { stats: CallStatistics }) {
  const start = Date.parse(stats.from);
  const long = stats.step_s * stats.buckets.length > 86_000;
  const at = (index: number) => new Date(start + index * stats.step_s * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(long ? { weekday: "short" } : {}), ...(stats.step_s < 60 ? { second: "2-digit" } : {}) });
  const calls = stats.buckets.reduce((sum, bucket) => sum + bucket.calls, 0);
  const errors = stats.buckets.reduce((sum, bucket) => sum + bucket.errors, 0);
  const per = stats.step_s === 60 ? "a minute" : stats.step_s < 60 ? `in ${stats.step_s} s` : `in ${duration(stats.step_s * 1e6).replace(" 0 s", "")}`;
  const worst = Math.max(0, ...stats.buckets.map((bucket) => bucket.p95_us ?? 0));
  return (
    <div class="charts">
      <Chart title={`Calls ${per}`} kind="bars" at={at} say={(value) => (Number.isInteger(value) ? String(value) : value.toFixed(1))} summary={`${count(calls, "call")}, ${count(errors, "error")}`} series={[
        { name: "calls", tone: "accent", values: stats.buckets.map((bucket) => bucket.calls) },
        { name: "errors", tone: "bad", values: stats.buckets.map((bucket) => bucket.errors) },
      ]} />
      <Chart title="Latency" kind="lines" at={at} say={(value) => (value ? duration(value) : "0")} summary={worst ? `p95 at most ${duration(worst)}` : "no calls"} series={[
        { name: "p50", tone: "accent", values: stats.buckets.map((bucket) => bucket.p50_us) },
        { name: "p95", tone: "dim", values: stats.buckets.map((bucket) => bucket.p95_us) },
      ]} />
    </div>
  );
}

type Key = "what" | "calls" | "errors" | "p50_us" | "p95_us" | "max_us";
const COLUMNS: [Key, string][] = [["calls", "calls"], ["errors", "errors"], ["p50_us", "p50"], ["p95_us", "p95"], ["max_us", "max"]];

export function Measures({ stats, by }: { stats: Loaded<CallStatistics>; by: "servers" | "tools" }) {
  return <Show from={stats} lines={6}>{(value) => <MeasureTable rows={value[by]} by={by} />}</Show>;
}

function MeasureTable({ rows, by }: { rows: CallTotals[]; by: "servers" | "tools" }) {
  const [sort, setSort] = useState<{ key: Key; up: boolean }>({ key: "calls", up: false });
  if (!rows.length) return <Empty title="No calls in this time range" />;
  const name = (row: CallTotals) => (row.name ? `${row.server}.${row.name}` : row.server);
  const sorted = rows.toSorted((one, other) => (sort.key === "what" ? name(one).localeCompare(name(other)) : one[sort.key] - other[sort.key]) * (sort.up ? 1 : -1));
  const head = (key: Key, label: string) => (
    <th scope="col" key={key} class={key === "what" ? undefined : "number"} aria-sort={sort.key === key ? (sort.up ? "ascending" : "descending") : undefined}>
      <button type="button" class="sort" onClick={() => setSort({ key, up: sort.key === key ? !sort.up : key === "what" })}>{label}<span aria-hidden="true">{sort.key === key ? (sort.up ? " ↑" : " ↓") : ""}</span></button>
    </th>
  );
  return (
    <table class="table measures" aria-label={by === "servers" ? "By server" : "By tool"}>
      <thead><tr>{head("what", by === "servers" ? "server" : "tool")}{COLUMNS.map(([key, label]) => head(key, label))}</tr></thead>
      <tbody>
        {sorted.map((row) => (
          <tr key={name(row)}>
            <td><a href={to("calls", undefined, { server: row.server, name: row.name })}><Text text={name(row)} /></a></td>
            <td class="number" data-label="calls">{row.calls.toLocaleString("en")}</td>
            <td class={row.errors ? "number is-bad" : "number dim"} data-label="errors">{row.errors ? `${row.errors.toLocaleString("en")} · ${percent(row.errors, row.calls)}` : "0"}</td>
            <td class="number" data-label="p50">{duration(row.p50_us)}</td>
            <td class="number" data-label="p95">{duration(row.p95_us)}</td>
            <td class="number" data-label="max">{duration(row.max_us)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
