// Reading something for a page: what is known, what went wrong, and again.
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";

export interface Loaded<T> {
  value?: T;
  error?: ApiError;
  loading: boolean;
  reload: () => void;
}

/** Reads anew when `deps` change; an answer that comes late is dropped, and the old one stays until the new one is here. */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, deps: unknown[]): Loaded<T> {
  const [state, set] = useState<{ value?: T; error?: ApiError; loading: boolean }>({ loading: true });
  const [turn, again] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  // Before the paint, not after it: an answer is a frame earlier.
  useLayoutEffect(() => {
    const abort = new AbortController();
    set((old) => (old.loading ? old : { ...old, loading: true }));
    latest.current(abort.signal).then(
      (value) => abort.signal.aborted || set({ value, loading: false }),
      (error) => abort.signal.aborted || set((old) => ({ value: old.value, error: toApiError(error), loading: false })),
    );
    return () => abort.abort();
  }, [...deps, turn]);
  const reload = useCallback(() => again((n) => n + 1), []);
  return { ...state, reload };
}

export function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, error instanceof Error ? error.message : String(error));
}
