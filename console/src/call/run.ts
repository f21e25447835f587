// One call from the console, as it happens.
import { useEffect, useRef, useState } from "preact/hooks";
import { stream } from "../api";
import { toApiError } from "../load";
import type { CallEndReport, PendingRequest } from "../types";
import type { View } from "../view";

export interface LogLine { level?: string; logger?: string; data: unknown; at: number }

export interface Run {
  state: "on" | "ended" | "cancelled";
  id?: string;
  begun: number;
  ended?: number;
  progress?: { progress: number; total?: number; message?: string };
  logs: LogLine[];
  /** Lines that came before those that are kept. */
  dropped: number;
  requests: PendingRequest[];
  end?: CallEndReport;
}

const LOGS = 500;

export function useCall(): { run?: Run; start: (tool: string, given: unknown, view: View) => void; cancel: () => void; answered: (id: string) => void } {
  const [run, setRun] = useState<Run | undefined>(undefined);
  const abort = useRef<AbortController | undefined>(undefined);
  // Leaving the page leaves the call, and that cancels it.
  useEffect(() => () => abort.current?.abort(), []);

  const start = (tool: string, given: unknown, view: View) => {
    abort.current?.abort();
    const mine = (abort.current = new AbortController());
    let now: Run = { state: "on", begun: performance.now(), logs: [], dropped: 0, requests: [] };
    let drawn = 0;
    const draw = () => {
      drawn = 0;
      if (abort.current === mine) setRun(now);
    };
    // Servers may say a thousand things a second; a frame is soon enough.
    const put = (change: Partial<Run>) => {
      now = { ...now, ...change };
      drawn ||= requestAnimationFrame(draw);
    };
    const over = (change: Partial<Run>) => {
      now = { ...now, ...change, ended: performance.now(), requests: [] };
      cancelAnimationFrame(drawn);
      draw();
    };
    setRun(now);
    stream("/calls", { tool, ...view, arguments: given }, (name, data) => {
      if (name === "started") put({ id: data.id });
      else if (name === "progress") put({ progress: data });
      else if (name === "request") put({ requests: [...now.requests, data] });
      else if (name === "end") over({ state: "ended", end: data });
      else if (name === "log") {
        const logs = [...now.logs, { ...data, at: performance.now() - now.begun }];
        put({ logs: logs.slice(-LOGS), dropped: now.dropped + Math.max(0, logs.length - LOGS) });
      }
    }, mine.signal).then(
      () => now.end || mine.signal.aborted || over({ state: "ended", end: lost("the gateway closed the connection without a result") }),
      (error) => {
        if (now.end) return;
        if (mine.signal.aborted) over({ state: "cancelled" });
        else {
          const { error: message, hint } = toApiError(error);
          over({ state: "ended", end: lost(message, hint) });
        }
      },
    );
  };
  const answered = (id: string) => setRun((old) => old && { ...old, requests: old.requests.filter((request) => request.id !== id) });
  return { run, start, cancel: () => abort.current?.abort(), answered };
}

function lost(message: string, hint?: string): CallEndReport {
  return { ok: false, error: { message, hint }, duration_us: 0, bytes: 0 };
}
