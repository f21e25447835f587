// The time as it passes, for words such as "12 s ago"; and what changes fast, looked at now and then.
import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";

/** The time in ms, anew every `every` ms while the page can be seen; 0 stands still. */
export function useNow(every = 1000): number {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    if (!every) return undefined;
    set(Date.now());
    const timer = setInterval(() => document.hidden || set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** The signal's value, the first change at once and then at most every `every` ms. */
export function useSampled<T>(from: ReadonlySignal<T>, every: number): T {
  const [value, set] = useState(() => from.peek());
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let late = false;
    const take = () => {
      set(() => from.peek());
      late = false;
      timer = setTimeout(() => {
        timer = undefined;
        if (late) take();
      }, every);
    };
    const stop = from.subscribe(() => {
      if (timer) late = true;
      else take();
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [from, every]);
  return value;
}
