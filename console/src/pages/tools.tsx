// The tools: found as one types, by server when nothing is looked for, with what is chosen beside them.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, query } from "../api";
import { generation, servers, session } from "../live";
import { useLoad } from "../load";
import { go, route, setQuery, to } from "../router";
import type { ToolRow } from "../types";
import { Badge } from "../ui/badge";
import { Empty, Failure, Skeleton } from "../ui/empty";
import { Search, Select } from "../ui/field";
import { grouped, Keyed } from "../ui/keyed";
import { Page } from "../ui/page";
import { Text } from "../ui/text";
import { readView, viewChoices } from "../view";
import { count } from "../words";
import { ToolDetailView } from "./tool";

/** How long typing must pause before it is looked for; and how many are then wanted. */
const PAUSE = 10;
const FOUND = 200;

export function Tools({ id }: { id: string }) {
  const server = route.value.query.get("server") ?? "";
  const asked = route.value.query.get("q") ?? "";
  const seen = route.value.query.get("seen") ?? "";
  const view = readView(seen);
  const [typed, setTyped] = useState(asked);
  const [sent, timer] = [useRef(asked), useRef(0)];
  const type = (text: string) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      sent.current = text;
      setQuery({ q: text });
    }, PAUSE);
  };
  // An address from elsewhere is taken over; our own comes late, and must not undo what was typed since.
  useEffect(() => {
    if (asked === sent.current) return;
    sent.current = asked;
    setTyped(asked);
  }, [asked]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const loaded = useLoad((signal) => get<ToolRow[]>(`/tools${query({ q: asked, server, ...view, limit: asked ? FOUND : undefined })}`, signal), [asked, server, seen, generation.value]);
  const choices = viewChoices(session.value?.profiles ?? (view.profile !== undefined ? [view.profile] : []));
  const tools = loaded.value;
  const rows = useMemo(() => (!tools ? [] : asked ? tools.map((item) => ({ item })) : grouped(tools, (tool) => tool.server, (group) => `${count(group.length, "tool")} · ${count(sum(group), "token")}`)), [tools, asked]);
  const names = [...new Set([...(servers.value?.map((each) => each.name) ?? []), ...(server ? [server] : [])])];

  return (
    <Page wide title="Tools" lead={tools && !asked ? `${count(tools.length, "tool")}, ${count(sum(tools), "token")} if all are exposed` : asked && tools ? `${tools.length === FOUND ? `the first ${FOUND}` : count(tools.length, "tool")} for “${asked}”` : "\u00a0"}>
      <div class={id ? "split chosen" : "split"}>
        <div class="list-side stack">
          <Keyed label="Tools" rows={rows} id={(tool) => tool.id} chosen={id} href={(tool) => to("tools", tool.id, { q: asked, server, seen, tab: route.value.query.get("tab") ?? "" })} about={`${asked} ${server} ${seen}`} draw={draw} search={(keys) => (
            <div class="filters">
              <Search label="Search tools" value={typed} onInput={(event) => type(event.currentTarget.value)} onKeyDown={keys} />
              <Select label="Server" hideLabel value={server} onChange={(event) => setQuery({ server: event.currentTarget.value })} options={[{ value: "", label: "All servers" }, ...names.map((name) => ({ value: name, label: name }))]} />
              <Select label="Exposure" hideLabel value={seen} onChange={(event) => go(to("tools", undefined, { q: asked, server, seen: event.currentTarget.value }))} options={choices} />
            </div>
          )}>
            {loaded.error && <Failure error={loaded.error} retry={loaded.reload} />}
            {!tools && !loaded.error && <Skeleton lines={12} />}
            {tools?.length === 0 && (asked ? (
              <Empty title="No matching tools">Try fewer or other words{server ? <>, or <button type="button" class="linkish" onClick={() => setQuery({ server: "" })}>all servers</button></> : ""}.</Empty>
            ) : (
              <Empty title="No tools">{server ? <>This server provides none, or is not ready: <a href={to("servers", server)}>open it</a>.</> : <>Add a server on the <a href={to("servers")}>servers page</a>, or add one to the config.</>}</Empty>
            ))}
          </Keyed>
        </div>
        <div class="detail-side">
          {id ? <ToolDetailView key={`${id} ${seen}`} id={id} view={view} back={to("tools", undefined, { q: asked, server, seen })} /> : <Empty title="Select a tool">The form, definition and transforms of the selected tool appear here.</Empty>}
        </div>
      </div>
    </Page>
  );
}

function sum(tools: ToolRow[]): number {
  return tools.reduce((sum, tool) => sum + tool.tokens, 0);
}

function draw(tool: ToolRow) {
  return (
    <>
      <span class="tool-line"><span class="tool-name cut"><Text text={tool.name} /></span><ToolMarks tool={tool} /><span class="dim number small">{tool.tokens}<span class="sr"> tokens</span></span></span>
      <span class="cut dim small"><Text text={(tool.description ?? tool.title ?? "").slice(0, 160)} /></span>
    </>
  );
}

/** What one must know of a tool at a glance. */
function ToolMarks({ tool }: { tool: ToolRow }) {
  return (
    <span class="marks">
      {tool.annotations.read_only === true ? <Badge tone="good">read only</Badge> : tool.annotations.destructive === true ? <Badge tone="bad">destructive</Badge> : null}
      {tool.findings && <Badge tone="warn">look</Badge>}
      {tool.hidden && <Badge>hidden</Badge>}
      {tool.changed && <Badge tone="accent">transformed</Badge>}
      {(tool.pin === "changed" || tool.pin === "new" || tool.pin === "withheld") && <Badge tone={tool.pin === "withheld" ? "bad" : "warn"}>{tool.pin === "withheld" ? "blocked" : tool.pin}</Badge>}
    </span>
  );
}
