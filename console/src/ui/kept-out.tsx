// Changes of files that did not take effect, above every page, and accepting them.
import { useState } from "preact/hooks";
import { post, type Refused } from "../api";
import { session } from "../live";
import { refused } from "../load";
import type { ReloadReport } from "../types";
import { Button } from "./button";
import { Confirm } from "./dialog";
import { Failure } from "./empty";
import { Hint } from "./hint";
import { say } from "./toast";

const TITLES: Record<string, string> = { config: "Config change kept out", lock: "Lock change kept out", secrets: "Secret change kept out" };

export function KeptOutChanges() {
  const [asking, setAsking] = useState(false);
  const [failed, setFailed] = useState<Refused | undefined>(undefined);
  const changes = session.value?.kept_out ?? [];
  if (!changes.length) return null;
  const reload = async (accept: boolean) => {
    setAsking(false);
    setFailed(undefined);
    try {
      const report = await post<ReloadReport>("/reload", { accept });
      if (!report.kept_out.length) say(report.changes.length ? `In force: ${report.changes.join("; ")}` : "In force as it is now");
    } catch (error) {
      setFailed(refused(error));
    }
  };
  return (
    <div class="kept-out notice bad" role="alert">
      {changes.map((change) => <p key={change.what}><strong>{TITLES[change.what] ?? "Change kept out"}:</strong> <Hint text={change.reason} /></p>)}
      <p class="dim">What was in force before stays in force.</p>
      {failed && <Failure error={failed} />}
      <div class="row">
        <Button small onClick={() => reload(false)}>Read again</Button>
        {changes.some((change) => change.acceptable) && <Button small kind="danger" onClick={() => setAsking(true)}>Accept…</Button>}
      </div>
      {asking && (
        <Confirm title="Accept the change?" action="Accept" danger close={() => setAsking(false)} confirm={() => reload(true)}>
          {changes.filter((change) => change.acceptable).map((change) => <p key={change.what}><Hint text={change.reason} /></p>)}
          <p>From then on it is in force as the files are now.</p>
        </Confirm>
      )}
    </div>
  );
}
