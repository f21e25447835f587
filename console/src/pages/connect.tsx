// Connect: what to paste into each client.
import { gateway } from "../base";
import { get } from "../api";
import { session } from "../live";
import { useLoad } from "../load";
import { route, setQuery } from "../router";
import type { ConnectGuide as Ways, ProfileReport } from "../types";
import { Snippet } from "../ui/copy";
import { Show } from "../ui/empty";
import { Select } from "../ui/field";
import { Page } from "../ui/page";
import { Tabs } from "../ui/tabs";

export function Connect(_: { id: string }) {
  const profile = route.value.query.get("profile") ?? "";
  const ways = useLoad((signal) => get<Ways>(`/connect${profile ? `?profile=${encodeURIComponent(profile)}` : ""}`, signal), [profile]);
  const profiles = useLoad((signal) => get<ProfileReport[]>("/profiles", signal), []);
  const names = (profiles.value ?? []).map((one) => one.name).filter((name) => name !== undefined);
  return (
    <Page title="Connect" lead="Configure an MCP client with this endpoint to use all servers." actions={names.length > 0 && <Select label="Profile" value={profile} options={[{ value: "", label: "everything" }, ...names.map((name) => ({ value: name, label: name }))]} onChange={(event) => setQuery({ profile: event.currentTarget.value })} />}>
      <Show from={ways} lines={10}>{(ways) => <Clients ways={ways} />}</Show>
    </Page>
  );
}

function Clients({ ways }: { ways: Ways }) {
  const chosen = route.value.query.get("client") ?? ways.clients[0]?.id ?? "";
  return (
    <>
      <div class="stack">
        <Snippet label="Endpoint" text={gateway() + ways.path} />
        {session.value?.protected && <p class="dim">Where it says <code>TOKEN</code>, put the gateway's token.{ways.token_file && <> It is kept in <code>{ways.token_file}</code> on the gateway's machine; it is not shown here.</>}</p>}
      </div>
      <Tabs label="Clients" chosen={chosen} choose={(client) => setQuery({ client })} tabs={ways.clients.map((client) => ({
        id: client.id,
        label: client.name,
        body: () => (
          <div class="stack">
            <p class="dim">{client.file ? <>Put this into <code>{client.file}</code>:</> : "Run or use this:"}</p>
            <Snippet label={`For ${client.name}`} text={client.snippet.replaceAll("ORIGIN", gateway())} />
          </div>
        ),
      }))} />
    </>
  );
}
