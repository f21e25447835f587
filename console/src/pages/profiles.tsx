// Profiles: what each offers, where, and what it costs a model by exposure.
import { gateway } from "../base";
import { get } from "../api";
import { percent, share } from "../calls/scale";
import { generation } from "../live";
import { useLoad } from "../load";
import { to } from "../router";
import type { ProfileReport } from "../types";
import { Badge } from "../ui/badge";
import { ButtonLink } from "../ui/button";
import { Snippet } from "../ui/copy";
import { Empty, Show } from "../ui/empty";
import { Page } from "../ui/page";
import { Text } from "../ui/text";
import { writeView } from "../view";
import { count } from "../words";

/** The context that shares are told of. */
const CONTEXT = 200_000;

export function Profiles(_: { id: string }) {
  const loaded = useLoad((signal) => get<ProfileReport[]>("/profiles", signal), [generation.value]);
  return (
    <Page title="Profiles" lead="A profile is a selection of tools with its own endpoint. Its exposure is the form in which models see the tools.">
      <Show from={loaded} lines={12}>{(profiles) => {
        const most = Math.max(1, ...profiles.flatMap((profile) => profile.exposures.map((one) => one.tokens)));
        return (
          <>
            {profiles.map((profile) => <Card key={profile.name ?? ""} profile={profile} most={most} />)}
            {!profiles.some((profile) => profile.name) && <First />}
          </>
        );
      }}</Show>
    </Page>
  );
}

function Card({ profile, most }: { profile: ProfileReport; most: number }) {
  const cheapest = Math.min(...profile.exposures.map((one) => one.tokens));
  const chosen = profile.exposures.find((one) => one.chosen);
  const name = profile.name ?? "everything";
  return (
    <section class="card stack" aria-label={`Profile ${name}`}>
      <header class="row spread">
        <div class="row"><h2><Text text={name} /></h2>{!profile.name && <Badge>no profile</Badge>}<span class="dim number">{count(profile.tools, "tool")}</span></div>
        <span class="row">
        <ButtonLink small href={to("tools", undefined, { seen: writeView(profile.name ? { profile: profile.name } : { exposure: "config" }) })}>Tools</ButtonLink>
        <ButtonLink small icon="connect" href={to("connect", undefined, { profile: profile.name })}>Connect</ButtonLink>
        </span>
      </header>
      <table class="exposures" aria-label={`Token cost of ${name} by exposure`}>
        <thead><tr><th scope="col">exposure</th><th scope="col" class="wide-only"><span class="sr">bar</span></th><th scope="col" class="number">tokens</th><th scope="col" class="number">of 200k</th><th scope="col" class="number">tools listed</th></tr></thead>
        <tbody>
          {profile.exposures.map((one) => (
            <tr key={one.exposure} class={one.chosen ? "chosen" : undefined}>
              <th scope="row">{one.exposure}{one.chosen && <> <Badge tone="accent">chosen</Badge></>}</th>
              <td class="wide-only"><svg class="cost" width="100%" height="12" aria-hidden="true"><rect class="all" width="100%" height="12" rx="3" /><rect class={one.chosen ? "part chosen" : "part"} width={`${Math.max(0.4, share(one.tokens, most) * 100)}%`} height="12" rx="3" /></svg></td>
              <td class="number">{one.tokens.toLocaleString("en")}</td>
              <td class="number dim">{percent(one.tokens, CONTEXT)}</td>
              <td class="number dim">{one.tools.toLocaleString("en")}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {chosen && chosen.tokens > 2 * cheapest && chosen.tokens - cheapest > 2000 && <p class="small dim">Each request of a model carries {(chosen.tokens - cheapest).toLocaleString("en")} tokens more than it would as <code>{profile.exposures.find((one) => one.tokens === cheapest)!.exposure}</code>. Set <code>exposure</code> in the config to change it.</p>}
      <Snippet label={`Endpoint of ${name}`} text={gateway() + profile.path} />
    </section>
  );
}

const LINES = `[consort.profiles.small]
servers = ["papers"]
exposure = "individual"`;

function First() {
  return <Empty title="No profiles"><div class="stack first-steps"><p>Add a profile to the config to expose a selection of tools:</p><Snippet label="Config example" text={LINES} /></div></Empty>;
}
