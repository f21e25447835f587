// The resources: what servers have to read, by server; templates with blanks; a reader that follows changes.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, post, query, stream, type ApiError } from "../api";
import { type Contents, ResourceContents } from "../content/content";
import { generation } from "../live";
import { toApiError, useLoad } from "../load";
import { go, route, setQuery, to } from "../router";
import type { ResourceRow } from "../types";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { Copy } from "../ui/copy";
import { Empty, Failure, Show } from "../ui/empty";
import { Search } from "../ui/field";
import { Icon } from "../ui/icon";
import { grouped, Keyed } from "../ui/keyed";
import { Page } from "../ui/page";
import { Suggest } from "../ui/suggest";
import { Long, Text } from "../ui/text";
import { expandTemplate, templateVariables } from "../uri-template";
import { bytes, count } from "../words";

const key = (server: string, uri: string) => `${server} ${uri}`;

export function Resources(_: { id: string }) {
  const loaded = useLoad((signal) => get<ResourceRow[]>("/resources", signal), [generation.value]);
  const typed = route.value.query.get("q") ?? "";
  const asked = typed.toLowerCase();
  const server = route.value.query.get("server") ?? "";
  const uri = route.value.query.get("uri") ?? "";
  const rows = useMemo(() => {
    const fit = (loaded.value ?? []).filter((each) => !asked || `${each.uri} ${each.name} ${each.title ?? ""} ${each.description ?? ""} ${each.template ? "template" : ""}`.toLowerCase().includes(asked));
    return grouped(fit, (each) => each.server, (group) => count(group.length, "resource"));
  }, [loaded.value, asked]);
  const chosen = loaded.value?.find((each) => each.server === server && each.uri === uri);
  return (
    <Page wide title="Resources" lead="Resources of all servers: files, records, pages.">
      <div class={uri ? "split chosen" : "split"}>
        <div class="list-side stack">
          <Keyed label="Resources" rows={rows} id={(each) => key(each.server, each.uri)} chosen={key(server, uri)} href={(each) => to("resources", undefined, { server: each.server, uri: each.uri, q: typed })} about={asked} draw={draw} search={(keys) => (
            <div class="filters"><Search label="Search resources" value={typed} onInput={(event) => setQuery({ q: event.currentTarget.value })} onKeyDown={keys} /></div>
          )}>
            <Show from={loaded} lines={8}>{(all) => !rows.length && <Empty title={all.length ? "No matching resources" : "No resources"}>{all.length ? "Try fewer or other words." : "No connected server provides any."}</Empty>}</Show>
          </Keyed>
        </div>
        <div class="detail-side">
          {!uri ? <Empty title="Select a resource">Its contents are read on request.</Empty> : (
            <article class="stack detail">
              <a class="back" href={to("resources", undefined, { q: typed })}><Icon name="left" /> All resources</a>
              <header class="stack tight">
                <div class="row"><h2 class="break"><Text text={chosen?.title ?? chosen?.name ?? uri} /></h2>{chosen?.template && <Badge tone="accent">template</Badge>}</div>
                <div class="row small"><a href={to("servers", server)}><Text text={server} /></a>{chosen?.mime && <span class="dim"><Text text={chosen.mime} /></span>}{chosen?.size !== undefined && <span class="dim">{bytes(chosen.size)}</span>}</div>
                <div class="row"><code><Text text={uri} /></code><Copy text={uri} label="Copy URI" /></div>
                {chosen?.description && <p class="pre break"><Long text={chosen.description} /></p>}
              </header>
              {chosen?.template ? <Blanks key={key(server, uri)} template={chosen} /> : loaded.value || loaded.error ? <Reader key={key(server, uri)} server={server} uri={uri} /> : null}
            </article>
          )}
        </div>
      </div>
    </Page>
  );
}

function draw(resource: ResourceRow) {
  return (
    <>
      <span class="tool-line"><span class="tool-name cut grow"><Text text={resource.title ?? resource.name} /></span>{resource.template && <Badge tone="accent">template</Badge>}<span class="dim small number">{resource.size !== undefined ? bytes(resource.size) : ""}</span></span>
      <span class="cut dim small mono"><Text text={resource.uri.slice(0, 160)} /></span>
    </>
  );
}

function Blanks({ template }: { template: ResourceRow }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [strict, setStrict] = useState(false);
  const blanks = useMemo(() => templateVariables(template.uri), [template.uri]);
  const address = expandTemplate(template.uri, values);
  const missing = blanks.some((blank) => blank.required && !values[blank.name]);
  const complete = async (name: string, value: string, signal: AbortSignal) => {
    const others = Object.fromEntries(Object.entries(values).filter(([other, text]) => other !== name && text));
    const answer = await post<{ values: string[] }>("/complete", { server: template.server, ref: { type: "ref/resource", uri: template.uri }, argument: { name, value }, context: { arguments: others } }, signal);
    return answer.values;
  };
  return (
    <form class="stack" noValidate onSubmit={(event) => {
      event.preventDefault();
      setStrict(true);
      if (!missing) go(to("resources", undefined, { server: template.server, uri: address }));
    }}>
      {blanks.map((blank) => (
        <Suggest key={blank.name} label={<Text text={blank.name} />} required={blank.required} error={strict && blank.required && !values[blank.name] ? "is required" : undefined} value={values[blank.name] ?? ""} change={(value) => setValues((old) => ({ ...old, [blank.name]: value }))} complete={(value, signal) => complete(blank.name, value, signal)} />
      ))}
      <p class="help">Reads <code><Text text={address} /></code></p>
      <div class="row"><Button kind="primary" type="submit">Read</Button></div>
    </form>
  );
}

function Reader({ server, uri }: { server: string; uri: string }) {
  const read = useLoad((signal) => post<{ contents: Contents[] }>("/resources/read", { server, uri }, signal), [server, uri]);
  return (
    <>
      <div class="row spread">
        <Watch server={server} uri={uri} updated={read.reload} />
        <Button small busy={read.loading} onClick={read.reload}>Reload</Button>
      </div>
      <Show from={read} lines={6}>{({ contents }) => (contents.length ? <ResourceContents contents={contents} /> : <p class="dim">Empty.</p>)}</Show>
    </>
  );
}

/** A switch that subscribes: what changed is read again. */
function Watch({ server, uri, updated }: { server: string; uri: string; updated: () => void }) {
  const [on, setOn] = useState(false);
  const [state, setState] = useState<{ watching: boolean; updates: number; error?: ApiError }>({ watching: false, updates: 0 });
  useEffect(() => {
    if (!on) return undefined;
    const abort = new AbortController();
    setState({ watching: false, updates: 0 });
    stream(`/resources/watch${query({ server, uri })}`, undefined, (name) => {
      if (name === "watching") setState((old) => ({ ...old, watching: true }));
      else if (name === "updated") {
        setState((old) => ({ ...old, updates: old.updates + 1 }));
        updated();
      }
    }, abort.signal).then(
      () => abort.signal.aborted || setOn(false),
      (problem) => {
        if (abort.signal.aborted) return;
        setState({ watching: false, updates: 0, error: toApiError(problem) });
        setOn(false);
      },
    );
    return () => abort.abort();
  }, [on, server, uri]);
  return (
    <div class="row">
      <Button small aria-pressed={on} onClick={() => setOn(!on)}>{on ? "Stop watching" : "Watch for changes"}</Button>
      <span class="dim small" role="status">{!on ? "" : !state.watching ? "subscribing…" : state.updates ? `${count(state.updates, "change")} so far` : "watching"}</span>
      {state.error && <Failure error={state.error} />}
    </div>
  );
}
