// The pins: what is no longer what somebody agreed to, and agreeing to it.
import { useState } from "preact/hooks";
import { get, post, ApiError } from "../api";
import { generation } from "../live";
import { toApiError, useLoad } from "../load";
import { isOperator } from "../rights";
import { route, setQuery, to } from "../router";
import type { PinDifference, PinReport as All } from "../types";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { Snippet } from "../ui/copy";
import { Confirm } from "../ui/dialog";
import { Diff } from "../ui/diff";
import { Empty, Failure, Show } from "../ui/empty";
import { Icon } from "../ui/icon";
import { OperatorNote } from "../ui/operator-note";
import { Page, Section } from "../ui/page";
import { Text } from "../ui/text";
import { count } from "../words";

export function Pins(_: { id: string }) {
  const loaded = useLoad((signal) => get<All>("/pins", signal), [generation.value]);
  const only = route.value.query.get("server") ?? "";
  return (
    <Page title="Pins" lead={loaded.value?.locked && loaded.value.file ? <>Current definitions of servers, compared with <code><Text text={loaded.value.file} /></code></> : "Current definitions of servers, compared with the lock."}>
      <Show from={loaded} lines={8}>{(pins) => (
        <>
          {pins.problem && <Failure error={{ error: pins.problem }} />}
          {!pins.locked && <Unlocked pins={pins} />}
          {(pins.locked || pins.differences.length > 0) && <Differences pins={pins} only={pins.locked ? only : ""} reload={loaded.reload} />}
          <SilentServers pins={pins} />
        </>
      )}</Show>
    </Page>
  );
}

const WHY = "A server can change its tool definitions after you added it, and models follow them. A lock pins the definitions you approved.";

function Unlocked({ pins }: { pins: All }) {
  if (pins.differences.length) return <div class="notice accent"><p><strong>No lock.</strong> {WHY} Review the definitions, then approve them all below, or with <code>consort lock</code>.</p></div>;
  return <Empty title="No lock"><p>{WHY} Create one with:</p><Snippet label="Command" text="consort lock" /></Empty>;
}

function SilentServers({ pins }: { pins: All }) {
  if (!pins.unknown?.length) return null;
  return (
    <Section title="Servers without known definitions">
      <ul class="stack tight">{pins.unknown.map(({ server, reason: why }) => <li key={server}><a href={to("servers", server)}><Text text={server} /></a> <span class="dim"><Text text={why} /></span></li>)}</ul>
    </Section>
  );
}

function Differences({ pins, only, reload }: { pins: All; only: string; reload: () => void }) {
  const [asking, setAsking] = useState<string[] | undefined>(undefined);
  const groups = new Map<string, PinDifference[]>();
  for (const difference of pins.differences) {
    if (only && difference.server !== only) continue;
    groups.set(difference.server, [...(groups.get(difference.server) ?? []), difference]);
  }
  const others = only ? pins.differences.filter((difference) => difference.server !== only).length : 0;
  const names = [...groups.keys()];
  return (
    <>
      {only && <p class="dim">Only <code><Text text={only} /></code>. <button type="button" class="linkish" onClick={() => setQuery({ server: "" })}>{others ? `Show ${count(others, "difference")} of other servers too` : "Show all servers"}</button></p>}
      {!names.length && <Empty title={pins.unknown?.length ? "All known definitions match the lock" : "All definitions match the lock"}>Changed tools, prompts, instructions and start commands are listed here and blocked until approved.</Empty>}
      {names.length > 0 && <OperatorNote />}
      {isOperator.value && (names.length > 1 || !pins.locked) && names.length > 0 && <div class="row"><Button kind={pins.locked ? "plain" : "primary"} onClick={() => setAsking(names)}>Approve all {count([...groups.values()].flat().length, "difference")}</Button></div>}
      {[...groups].map(([server, differences]) => (
        <Section key={server} title={server} actions={pins.locked && isOperator.value && <Button kind="primary" small onClick={() => setAsking([server])}>Approve {count(differences.length, "difference")}<span class="sr"> of {server}</span></Button>}>
          <Cards differences={differences} />
        </Section>
      ))}
      {asking && <Agree servers={asking} pins={pins} close={() => setAsking(undefined)} done={() => {
        setAsking(undefined);
        reload();
      }} reload={reload} />}
    </>
  );
}

/** So many are laid out at once, and so many with their lines open. */
const SHOWN = 50;
const OPEN = 12;

function Cards({ differences }: { differences: PinDifference[] }) {
  const [shown, show] = useState(SHOWN);
  // What looks bad comes first.
  const ordered = differences.toSorted((a, b) => Number(b.warnings.length > 0) - Number(a.warnings.length > 0));
  return (
    <>
      {ordered.slice(0, shown).map((difference, at) => <One key={at} difference={difference} open={differences.length <= OPEN || difference.warnings.length > 0} />)}
      {ordered.length > shown && <div><Button small onClick={() => show(shown + SHOWN)}>Show {Math.min(SHOWN, ordered.length - shown)} more of {ordered.length - shown}</Button></div>}
    </>
  );
}

const TONES = { added: "accent", removed: "neutral", changed: "warn" } as const;

function One({ difference, open }: { difference: PinDifference; open: boolean }) {
  const [lines, showLines] = useState(open);
  const what = difference.name ? `${difference.kind} ${difference.name}` : difference.kind;
  return (
    <article class="card stack tight" aria-label={`${what} ${difference.change}`}>
      <p class="row">
        <Badge tone={TONES[difference.change]}>{difference.change}</Badge>
        <span class="dim"><Text text={difference.kind} /></span>
        {difference.name && (difference.kind === "tool" ? <a href={to("tools", `${difference.server}.${difference.name}`)}><Text text={difference.name} /></a> : <strong><Text text={difference.name} /></strong>)}
        {!lines && difference.lines.length > 0 && <button type="button" class="linkish small" onClick={() => showLines(true)}>definition<span class="sr">: {what}</span></button>}
      </p>
      <Warnings difference={difference} />
      {lines && difference.lines.length > 0 && <Diff lines={difference.lines} label={`What changed in ${what}`} />}
    </article>
  );
}

function Warnings({ difference }: { difference: PinDifference }) {
  if (!difference.warnings.length) return null;
  return (
    <div class="notice bad">
      <p><Icon name="warn" /> <strong>Suspicious content. Review it before you approve:</strong></p>
      <ul>{difference.warnings.map((warning) => <li key={warning}><Text text={warning} /></li>)}</ul>
    </div>
  );
}

function Agree({ servers, pins, close, done, reload }: { servers: string[]; pins: All; close: () => void; done: () => void; reload: () => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const meant = pins.differences.filter((difference) => servers.includes(difference.server));
  const bad = meant.filter((difference) => difference.warnings.length);
  const agree = async () => {
    setBusy(true);
    try {
      await post("/pins", { servers, digest: pins.digest });
      done();
    } catch (problem) {
      const said = toApiError(problem);
      setError(said.status === 409 ? new ApiError(409, "the definitions changed; close this dialog and review them again") : said);
      setBusy(false);
      if (said.status === 409) reload();
    }
  };
  return (
    <Confirm title={servers.length === 1 ? `Approve the definitions of ${servers[0]}?` : "Approve these definitions?"} action="Approve" danger={bad.length > 0} busy={busy} close={close} confirm={agree}>
      <p>{count(meant.length, "difference")} of {servers.join(", ")} will be written into the lock. {pins.locked ? "Models will see the new definitions." : "Servers added later are blocked until approved."}</p>
      {bad.map((difference, at) => (
        <div key={at}><p class="label"><Text text={difference.name ?? difference.kind} /></p><Warnings difference={difference} /></div>
      ))}
      {error && <Failure error={error} />}
    </Confirm>
  );
}
