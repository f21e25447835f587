// Words about a server that its row and its page share.
import type { ServerReport } from "../types";
import { Spark } from "../ui/spark";
import { count, duration } from "../words";

/** How it is spoken to: transport, era, revision. */
export function Talks({ server }: { server: ServerReport }) {
  return <>{[server.transport === "local" ? "built in" : server.transport, server.era, server.revision].filter(Boolean).join(" · ")}</>;
}

export function Offers({ server }: { server: ServerReport }) {
  const words = [
    count(server.tools, "tool"),
    server.prompts > 0 && count(server.prompts, "prompt"),
    server.resources + server.templates > 0 && count(server.resources + server.templates, "resource"),
  ].filter(Boolean);
  return <span class="number">{words.join(", ")}</span>;
}

export function Latency({ server }: { server: ServerReport }) {
  const last = server.latencies.at(-1);
  const most = Math.max(...server.latencies, 0);
  const label = last === undefined ? "no calls" : `latency of the last ${count(server.latencies.length, "call")}: last ${duration(last * 1000)}, most ${duration(most * 1000)}`;
  return (
    <div class="latency" title={label}>
      <Spark values={server.latencies} label={label} />
      <span class="small dim number">{last === undefined ? "–" : duration(last * 1000)}</span>
    </div>
  );
}
