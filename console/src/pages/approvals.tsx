// Approvals: pending requests of policies, servers and models, answered here.
import { useEffect, useRef } from "preact/hooks";
import { alerts, canAlert, turnAlerts } from "../alerts";
import { link, pendingRequests } from "../live";
import { to } from "../router";
import type { PendingRequest } from "../types";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { Empty, Skeleton } from "../ui/empty";
import { Page } from "../ui/page";
import { PendingRequestCard } from "../ui/pending-request";
import { Text } from "../ui/text";
import { say } from "../ui/toast";
import { Waits } from "../ui/waits";
import { plain } from "../words";

export function Approvals(_: { id: string }) {
  const list = pendingRequests.value;
  useVanished(list);
  return (
    <Page title="Approvals" lead="Calls that need your approval, and input requests of servers and models." actions={canAlert() && <Button onClick={turnAlerts} aria-pressed={alerts.value}>{alerts.value ? "Browser notifications: on" : "Browser notifications: off"}</Button>}>
      {link.value === "starting" ? <Skeleton lines={6} /> : list.length ? (
        <ul class="stack approvals" aria-label="Pending requests">{list.map((request) => <li key={request.id}><Waiting request={request} /></li>)}</ul>
      ) : (
        <Empty title="No pending requests">
          Calls that require approval by a policy rule (<code>then = "ask"</code>) appear here, and input requests of servers. The first response counts, from here or from the client that made the call.
        </Empty>
      )}
    </Page>
  );
}

/** Says so when a question goes without this page having answered it. */
function useVanished(list: PendingRequest[]) {
  const before = useRef(list);
  useEffect(() => {
    const here = new Set(list.map((request) => request.id));
    for (const request of before.current) {
      if (here.has(request.id) || answered.delete(request.id)) continue;
      say(`The request about ${plain(request.tool ?? request.server ?? request.caller)} was closed: answered elsewhere, or its call ended`);
    }
    before.current = list;
  }, [list]);
}

const answered = new Set<string>();

const KINDS: Record<PendingRequest["kind"], string> = { approval: "approval", server: "server request", model: "model question", sampling: "sampling request" };

/** Where the tool is: `server.tool`, however it was named. */
function toolId({ server, tool = "" }: PendingRequest): string {
  return !server || tool.startsWith(`${server}.`) ? tool : `${server}.${tool}`;
}

function Waiting({ request }: { request: PendingRequest }) {
  return (
    <article class="pending-request" aria-label={`Request of ${plain(request.server ?? request.caller)}`}>
      <header class="row spread">
        <div class="row small">
          <Badge tone={request.kind === "approval" ? "accent" : "neutral"}>{KINDS[request.kind] ?? request.kind}</Badge>
          <span class="break"><span class="dim">for</span> <Text text={request.caller} /></span>
          {request.tool && <span class="break"><span class="dim">tool</span> <a href={to("tools", toolId(request))}><Text text={request.tool} /></a></span>}
          {request.server && <span class="break"><span class="dim">on</span> <a href={to("servers", request.server)}><Text text={request.server} /></a></span>}
          {request.conversation && <a href={to("chat", request.conversation)}>in a conversation</a>}
        </div>
        <Waits request={request} />
      </header>
      <PendingRequestCard bare request={request} done={() => answered.add(request.id)} />
    </article>
  );
}
