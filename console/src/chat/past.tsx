// Past conversations: searched, opened, deleted.
import { useState } from "preact/hooks";
import { del, type ApiError } from "../api";
import { type Loaded, toApiError } from "../load";
import { go, to } from "../router";
import { useNow } from "../ticking";
import type { ConversationSummary } from "../types";
import { IconButton } from "../ui/button";
import { Confirm } from "../ui/dialog";
import { Failure, Show } from "../ui/empty";
import { Search } from "../ui/field";
import { Text } from "../ui/text";
import { say } from "../ui/toast";
import { ago, count, plain } from "../words";

const TONES: Record<string, string> = { completed: "neutral", error: "bad", damaged: "bad", denied: "bad", limit_reached: "warn", waiting: "warn", unfinished: "warn", running: "accent" };

export function Past({ from, chosen }: { from: Loaded<ConversationSummary[]>; chosen: string }) {
  const [wanted, setWanted] = useState("");
  const [gone, setGone] = useState<ConversationSummary | undefined>(undefined);
  useNow(30_000);
  const needle = wanted.trim().toLowerCase();
  return (
    <div class="past">
      <Search label="Search conversations" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      <Show from={from} lines={6}>{(all) => {
        const list = all.filter((one) => !needle || one.title.toLowerCase().includes(needle) || one.id.includes(needle) || words(one).includes(needle));
        if (!all.length) return <p class="dim small">No conversations. They are stored here, like those of <code>consort chat</code>.</p>;
        if (!list.length) return <p class="dim small">No matching conversations.</p>;
        return (
          <ul aria-label="Conversations">
            {list.map((one) => (
              <li key={one.id} class={one.id === chosen ? "chosen" : undefined}>
                <a href={to("chat", one.id)} aria-current={one.id === chosen ? "true" : undefined}>
                  <span class="past-title"><Text text={one.title || "(no text)"} /></span>
                  <span class="small dim"><span class={`state ${TONES[one.running ? "running" : one.state] ?? "neutral"}`}>{words(one)}</span> · {ago(one.last)} · {count(one.messages, "message")}</span>
                </a>
                <IconButton icon="trash" label={`Delete ${plain(one.title)}`} disabled={one.running} onClick={() => setGone(one)} />
              </li>
            ))}
          </ul>
        );
      }}</Show>
      {gone && <Delete conversation={gone} close={() => setGone(undefined)} done={() => { from.reload(); if (gone.id === chosen) go(to("chat"), "replace"); }} />}
    </div>
  );
}

function words(one: ConversationSummary): string {
  return one.running ? "running" : one.state.replaceAll("_", " ");
}

function Delete({ conversation, close, done }: { conversation: ConversationSummary; close: () => void; done: () => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const confirm = async () => {
    setBusy(true);
    try {
      await del(`/conversations/${encodeURIComponent(conversation.id)}`);
      say("Deleted");
      close();
      done();
    } catch (problem) {
      setError(toApiError(problem));
      setBusy(false);
    }
  };
  return (
    <Confirm title="Delete this conversation?" action="Delete" danger busy={busy} close={close} confirm={confirm}>
      <p class="break">“<Text text={conversation.title} />” with {count(conversation.messages, "message")} is removed for good.</p>
      {error && <Failure error={error} />}
    </Confirm>
  );
}
