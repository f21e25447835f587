// Changes of files that did not take effect, above every page, and accepting them.
import { useState } from "preact/hooks";
import { post, type ApiError } from "../api";
import { session } from "../live";
import { toApiError } from "../load";
import { isOperator } from "../rights";
import type { ReloadReport } from "../types";
import { Button } from "./button";
import { Confirm } from "./dialog";
import { Failure } from "./empty";
import { Hint } from "./hint";
import { OperatorNote } from "./operator-note";
import { say } from "./toast";

const TITLES: Record<string, string> = { config: "Config change rejected", lock: "Lock change rejected", secrets: "Secret change rejected" };

export function RejectedChanges() {
  const [asking, setAsking] = useState(false);
  const [failed, setFailed] = useState<ApiError | undefined>(undefined);
  const changes = session.value?.rejected ?? [];
  if (!changes.length) return null;
  const reload = async (accept: boolean) => {
    setAsking(false);
    setFailed(undefined);
    try {
      const report = await post<ReloadReport>("/reload", { accept });
      if (!report.rejected.length) say(report.changes.length ? `In effect: ${report.changes.join("; ")}` : "Accepted");
    } catch (error) {
      setFailed(toApiError(error));
    }
  };
  return (
    <div class="rejected-changes notice bad" role="alert">
      {changes.map((change) => <p key={change.part}><strong>{TITLES[change.part] ?? "Change rejected"}:</strong> <Hint text={change.reason} /></p>)}
      <p class="dim">The previous version stays in effect.</p>
      {failed && <Failure error={failed} />}
      <OperatorNote />
      <div class="row" hidden={!isOperator.value}>
        <Button small onClick={() => reload(false)}>Reload</Button>
        {changes.some((change) => change.acceptable) && <Button small kind="danger" onClick={() => setAsking(true)}>Accept…</Button>}
      </div>
      {asking && (
        <Confirm title="Accept the change?" action="Accept" danger close={() => setAsking(false)} confirm={() => reload(true)}>
          {changes.filter((change) => change.acceptable).map((change) => <p key={change.part}><Hint text={change.reason} /></p>)}
          <p>The files take effect as they are now.</p>
        </Confirm>
      )}
    </div>
  );
}
