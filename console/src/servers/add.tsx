// Adding servers: from a form or a pasted mcp.json; what would run is shown before anything does.
import { useEffect, useState } from "preact/hooks";
import { post, type ApiError } from "../api";
import { toApiError } from "../load";
import { session } from "../live";
import { go, route, setQuery, to } from "../router";
import type { ServerDraft } from "../types";
import { Badge } from "../ui/badge";
import { Button, IconButton } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Failure, Problems } from "../ui/empty";
import { Select, TextArea, TextField } from "../ui/field";
import { Hint } from "../ui/hint";
import { Tabs } from "../ui/tabs";
import { Text } from "../ui/text";
import { say } from "../ui/toast";
import { count } from "../words";
import { Command, Names } from "./command";
import { BLANK, type Pair, type Typed, written } from "./draft";

const PAUSE = 250;

export function AddServer({ close }: { close: () => void }) {
  const [typed, setTyped] = useState<Typed>(BLANK);
  const [pasted, setPasted] = useState("");
  const tab = route.value.query.get("add") === "paste" ? "paste" : "form";
  const text = tab === "form" ? written(typed) : pasted.trim() || undefined;
  const { drafts, error, checking } = usePreview(text);
  const closed = session.value?.can_change === false;
  return (
    <Dialog title="Add servers" wide close={close}>
      {closed && <div class="notice warn"><p>Servers cannot be added here: <Hint text={session.value?.change_refusal_reason ?? "the gateway does not allow it"} /></p><p class="dim">Write them into the config that the gateway was started with; it takes changes over.</p></div>}
      <Tabs label="How to add" chosen={tab} choose={(add) => setQuery({ add })} tabs={[
        { id: "form", label: "Form", body: () => <DraftForm typed={typed} change={setTyped} /> },
        { id: "paste", label: "Paste an mcp.json", body: () => <Paste text={pasted} change={setPasted} /> },
      ]} />
      <Preview drafts={drafts} error={error} asked={text !== undefined} checking={checking} />
      <Commit text={text} drafts={checking || error ? undefined : drafts} closed={closed} close={close} />
    </Dialog>
  );
}

function usePreview(text: string | undefined) {
  const [state, set] = useState<{ drafts?: ServerDraft[]; error?: ApiError; of?: string }>({});
  useEffect(() => {
    if (text === undefined) {
      set({});
      return undefined;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post<ServerDraft[]>("/servers/preview", { text }, abort.signal).then(
        (drafts) => abort.signal.aborted || set({ drafts, of: text }),
        (error) => abort.signal.aborted || set({ error: toApiError(error), of: text }),
      );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  return { ...state, checking: state.of !== text };
}

function DraftForm({ typed, change }: { typed: Typed; change: (typed: Typed) => void }) {
  const set = (part: Partial<Typed>) => change({ ...typed, ...part });
  return (
    <div class="stack">
      <div class="two">
        <TextField label="Name" required value={typed.name} help="1 to 64 letters, digits, _ or -" spellcheck={false} onInput={(event) => set({ name: event.currentTarget.value })} />
        <Select label="Type" value={typed.kind} options={[{ value: "program", label: "local process (stdio)" }, { value: "url", label: "a URL" }]} onChange={(event) => set({ kind: event.currentTarget.value as Typed["kind"] })} />
      </div>
      {typed.kind === "program" ? (
        <>
          <div class="two">
            <TextField label="Program" required class="mono" placeholder="npx" value={typed.program} spellcheck={false} onInput={(event) => set({ program: event.currentTarget.value })} />
            <TextField label="Folder" class="mono" help="working directory; the gateway's if empty" value={typed.folder} spellcheck={false} onInput={(event) => set({ folder: event.currentTarget.value })} />
          </div>
          <TextArea label="Arguments, one per line" class="code" rows={3} placeholder={"-y\n@modelcontextprotocol/server-everything"} value={typed.args} onInput={(event) => set({ args: event.currentTarget.value })} />
          <Pairs label="Variables" one="variable" pairs={typed.variables} change={(variables) => set({ variables })} />
        </>
      ) : (
        <>
          <TextField label="URL" required class="mono" type="url" placeholder="https://example.com/mcp" value={typed.url} spellcheck={false} onInput={(event) => set({ url: event.currentTarget.value })} />
          <Pairs label="Headers" one="header" pairs={typed.headers} change={(headers) => set({ headers })} />
        </>
      )}
    </div>
  );
}

function Pairs({ label, one, pairs, change }: { label: string; one: string; pairs: Pair[]; change: (pairs: Pair[]) => void }) {
  return (
    <fieldset class="pairs">
      <legend class="label">{label}</legend>
      {pairs.map((pair, at) => (
        <div class="pair" key={at}>
          <TextField label={`Name of ${one} ${at + 1}`} hideLabel class="mono" placeholder="NAME" value={pair.name} spellcheck={false} onInput={(event) => change(pairs.with(at, { ...pair, name: event.currentTarget.value }))} />
          <TextField label={`Value of ${one} ${at + 1}`} hideLabel class="mono" placeholder="value" value={pair.value} spellcheck={false} onInput={(event) => change(pairs.with(at, { ...pair, value: event.currentTarget.value }))} />
          <IconButton icon="close" label={`Remove ${one} ${at + 1}`} onClick={() => change(pairs.toSpliced(at, 1))} />
        </div>
      ))}
      <div class="row"><Button small icon="plus" onClick={() => change([...pairs, { name: "", value: "" }])}>Add a {one}</Button></div>
      {pairs.length > 0 && <p class="help">Values are written into the config file. <Hint text="For secrets, use a reference such as `${NAME}`, read from the gateway's environment." /></p>}
    </fieldset>
  );
}

const EXAMPLE = `{
  "mcpServers": {
    "everything": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"] }
  }
}`;

function Paste({ text, change }: { text: string; change: (text: string) => void }) {
  return <TextArea label="An mcp.json, or one entry of it" class="code" rows={9} placeholder={EXAMPLE} value={text} help="In the format of Claude, Cursor, VS Code and other clients." onInput={(event) => change(event.currentTarget.value)} />;
}

function Preview({ drafts, error, asked, checking }: { drafts?: ServerDraft[]; error?: ApiError; asked: boolean; checking: boolean }) {
  return (
    <section class="preview" aria-label="Preview" aria-busy={asked && checking}>
      <h3>Preview</h3>
      <div aria-live="polite" class="stack">
        {!asked && <p class="dim">Nothing to preview. No server is started before you add it.</p>}
        {asked && error && !checking && <Failure error={error} />}
        {asked && checking && !drafts && !error && <p class="dim">Validating…</p>}
        {asked && drafts?.length === 0 && <p class="dim">No server found.</p>}
        {asked && drafts?.map((draft) => <DraftCard key={draft.name} draft={draft} />)}
      </div>
    </section>
  );
}

function DraftCard({ draft }: { draft: ServerDraft }) {
  return (
    <article class="card stack tight" aria-label={`Server ${draft.name}`}>
      <div class="row"><strong class="break"><Text text={draft.name} /></strong>{draft.transport && <Badge>{draft.transport}</Badge>}{draft.exists && <Badge tone="bad">name is taken</Badge>}</div>
      <Command command={draft.command} folder={draft.cwd} url={draft.url} />
      {draft.command && <p class="small"><span class="dim">Variables:</span> <Names names={draft.env} none="none" /></p>}
      {draft.url && <p class="small"><span class="dim">Headers:</span> <Names names={draft.headers} none="none" /></p>}
      <Problems problems={draft.problems} />
      {draft.exists && <p class="small">A server named <code><Text text={draft.name} /></code> already exists. Choose another name, or remove that one first.</p>}
    </article>
  );
}

function Commit({ text, drafts, closed, close }: { text?: string; drafts?: ServerDraft[]; closed: boolean; close: () => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const [token, setToken] = useState("");
  const guarded = session.value?.adding_needs_token === true;
  useEffect(() => setError(undefined), [text]);
  const sound = !!drafts?.length && drafts.every((draft) => !draft.exists && !draft.problems.some((problem) => problem.severity === "error"));
  const programs = drafts?.filter((draft) => draft.command).length ?? 0;
  const add = async () => {
    setBusy(true);
    try {
      const { added } = await post<{ added: string[] }>("/servers", { text, token: token.trim() || undefined });
      say(`Added ${added.join(", ")}; connecting`);
      close();
      if (added.length === 1) go(to("servers", added[0]));
    } catch (problem) {
      setError(toApiError(problem));
      setBusy(false);
    }
  };
  return (
    <div class="stack commit">
      {!!drafts?.length && !sound && <p class="small dim">Fix or remove the invalid servers first.</p>}
      {sound && programs > 0 && <p class="notice warn">{programs === 1 ? "This command will run" : `These ${programs} commands will run`} on the gateway's machine, with the gateway's rights: its files, its network, its secrets. Add only what you trust.</p>}
      {sound && guarded && !closed && <TextField label="Token" type="password" autocomplete="current-password" spellcheck={false} value={token} help="Enter the gateway's token again: adding a server can run any program." onInput={(event) => setToken(event.currentTarget.value)} />}
      {error && <Failure error={error} />}
      <div class="row end">
        <Button onClick={close}>Cancel</Button>
        <Button kind="primary" disabled={!sound || closed || (guarded && !token.trim())} busy={busy} onClick={add}>{drafts?.length ? `Add ${count(drafts.length, "server")}` : "Add"}</Button>
      </div>
    </div>
  );
}
