// The prompts: their arguments with completion, and the messages that they become.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, post, type ApiError } from "../api";
import { Content } from "../content/content";
import { generation } from "../live";
import { toApiError, useLoad } from "../load";
import { route, setQuery, to } from "../router";
import type { ContentBlock as Item, PromptRow } from "../types";
import { Button } from "../ui/button";
import { Copy } from "../ui/copy";
import { Empty, Failure, Show } from "../ui/empty";
import { Search } from "../ui/field";
import { Icon } from "../ui/icon";
import { grouped, Keyed } from "../ui/keyed";
import { Page } from "../ui/page";
import { Suggest } from "../ui/suggest";
import { Long, Text } from "../ui/text";
import { count } from "../words";

export function Prompts({ id }: { id: string }) {
  const loaded = useLoad((signal) => get<PromptRow[]>("/prompts", signal), [generation.value]);
  const typed = route.value.query.get("q") ?? "";
  const asked = typed.toLowerCase();
  const rows = useMemo(() => {
    const fit = (loaded.value ?? []).filter((prompt) => !asked || `${prompt.id} ${prompt.title ?? ""} ${prompt.description ?? ""}`.toLowerCase().includes(asked));
    return grouped(fit, (prompt) => prompt.server, (group) => count(group.length, "prompt"));
  }, [loaded.value, asked]);
  const chosen = loaded.value?.find((prompt) => prompt.id === id);
  return (
    <Page wide title="Prompts" lead="Prompt templates of all servers.">
      <div class={id ? "split chosen" : "split"}>
        <div class="list-side stack">
          <Keyed label="Prompts" rows={rows} id={(prompt) => prompt.id} chosen={id} href={(prompt) => to("prompts", prompt.id, { q: typed })} about={asked} draw={draw} search={(keys) => (
            <div class="filters"><Search label="Search prompts" value={typed} onInput={(event) => setQuery({ q: event.currentTarget.value })} onKeyDown={keys} /></div>
          )}>
            <Show from={loaded} lines={8}>{(prompts) => !rows.length && <Empty title={prompts.length ? "No matching prompts" : "No prompts"}>{prompts.length ? "Try fewer or other words." : "No connected server provides any."}</Empty>}</Show>
          </Keyed>
        </div>
        <div class="detail-side">
          {chosen ? <One key={chosen.id} prompt={chosen} /> : id && loaded.value ? <Empty title="Unknown prompt"><a href={to("prompts")}>All prompts</a></Empty> : !id && <Empty title="Select a prompt">Fill in its arguments to render the messages.</Empty>}
        </div>
      </div>
    </Page>
  );
}

function draw(prompt: PromptRow) {
  return (
    <>
      <span class="tool-line"><span class="tool-name cut grow"><Text text={prompt.title ?? prompt.name} /></span><span class="dim small">{prompt.arguments.length ? count(prompt.arguments.length, "argument") : ""}</span></span>
      <span class="cut dim small"><Text text={(prompt.description ?? prompt.name).slice(0, 160)} /></span>
    </>
  );
}

interface Messages { description?: string; messages: { role: string; content: Item }[] }

function One({ prompt }: { prompt: PromptRow }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [strict, setStrict] = useState(false);
  const [busy, setBusy] = useState(false);
  const [got, setGot] = useState<Messages | undefined>(undefined);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const missing = prompt.arguments.filter((argument) => argument.required && !values[argument.name]);
  // What is not filled in is not sent.
  const given = () => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
  const render = async () => {
    setStrict(true);
    if (missing.length) return;
    setBusy(true);
    setError(undefined);
    try {
      setGot(await post<Messages>(`/prompts/${encodeURIComponent(prompt.id)}`, { arguments: given() }));
    } catch (problem) {
      setError(toApiError(problem));
    }
    setBusy(false);
  };
  // Without blanks there is nothing to wait for.
  useEffect(() => {
    if (!prompt.arguments.length) void render();
  }, []);
  // At the server a prompt has the name that follows the server's in its id.
  const name = prompt.id.startsWith(`${prompt.server}.`) ? prompt.id.slice(prompt.server.length + 1) : prompt.name;
  const complete = async (argument: string, value: string, signal: AbortSignal) => {
    const { [argument]: _, ...others } = given();
    const answer = await post<{ values: string[] }>("/complete", { server: prompt.server, ref: { type: "ref/prompt", name }, argument: { name: argument, value }, context: { arguments: others } }, signal);
    return answer.values;
  };
  return (
    <article class="stack detail">
      <a class="back" href={to("prompts")}><Icon name="left" /> All prompts</a>
      <header class="stack tight">
        <div class="row"><h2 class="break"><Text text={prompt.name} /></h2>{prompt.title && prompt.title !== prompt.name && <span class="dim"><Text text={prompt.title} /></span>}</div>
        <div class="row small"><a href={to("servers", prompt.server)}><Text text={prompt.server} /></a></div>
        {prompt.description && <p class="pre break"><Long text={prompt.description} /></p>}
      </header>
      <form class="stack" noValidate onSubmit={(event) => {
        event.preventDefault();
        void render();
      }}>
        {prompt.arguments.map((argument) => (
          <Suggest key={argument.name} label={<Text text={argument.title ?? argument.name} />} help={argument.description && <Long text={argument.description} limit={280} />} required={argument.required}
            error={strict && argument.required && !values[argument.name] ? "is required" : undefined}
            value={values[argument.name] ?? ""} change={(value) => setValues((old) => ({ ...old, [argument.name]: value }))} complete={(value, signal) => complete(argument.name, value, signal)} />
        ))}
        <div class="row"><Button kind="primary" type="submit" busy={busy}>Render</Button>{!prompt.arguments.length && <span class="dim">No arguments.</span>}</div>
      </form>
      {error && <Failure error={error} />}
      {got && (
        <section class="stack happening" aria-label="Messages" aria-live="polite">
          <div class="row spread"><h3>{count(got.messages.length, "message")}</h3><Copy text={() => JSON.stringify(got.messages, null, 2)} label="Copy as JSON" /></div>
          {got.description && <p class="dim"><Long text={got.description} /></p>}
          {got.messages.map((message, at) => (
            <div key={at} class="card stack tight"><p class="label"><Text text={message.role} /></p><Content items={[message.content]} server={prompt.server} /></div>
          ))}
        </section>
      )}
    </article>
  );
}
