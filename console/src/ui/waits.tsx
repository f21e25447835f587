// How long a question still waits.
import { useNow } from "../ticking";
import type { PendingRequest } from "../types";
import { ago, duration } from "../words";

export function Waits({ request }: { request: PendingRequest }) {
  const now = useNow(1000);
  if (!request.expires) return <span class="small dim">asked {ago(request.since, now)}</span>;
  const left = Date.parse(request.expires) - now;
  if (left <= 0) return <span class="small is-warn">timed out</span>;
  return <span class={left < 30_000 ? "small is-warn number" : "small dim number"}>waits {duration(Math.ceil(left / 1000) * 1e6)} more</span>;
}
