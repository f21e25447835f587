// Where we are: the path below console/ and the query, by the history API.
import { signal } from "@preact/signals";
import { PREFIX } from "./base";

const BASE = `${PREFIX}/console`;

export interface Route {
  page: string; // the first part: servers, tools, …
  id: string; // the rest, decoded; empty without
  query: URLSearchParams;
}

function read(address: URL | Location): Route {
  const path = address.pathname.startsWith(`${BASE}/`) ? address.pathname.slice(BASE.length + 1) : "";
  const [page = "", ...rest] = path.split("/");
  return { page, id: decode(rest.join("/")), query: new URLSearchParams(address.search) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal<Route>(read(location));

/** The address of a page; what is set of the query goes with it. */
export function to(page: string, id?: string, query: Record<string, string | undefined> = {}): string {
  const set = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  const search = set.length ? `?${new URLSearchParams(set)}` : "";
  return `${BASE}/${page}${id ? `/${encodeURIComponent(id)}` : ""}${search}`;
}

export function go(address: string, how: "push" | "replace" = "push") {
  try {
    history[how === "push" ? "pushState" : "replaceState"](null, "", address);
  } catch {
    // Safari allows a hundred changes in half a minute; the page goes on, its address stays behind
  }
  route.value = read(new URL(address, location.href));
}

/** Sets (or with "" takes away) parts of the query where we are, without a step in the history. */
export function setQuery(values: Record<string, string | undefined>) {
  const query = new URLSearchParams(route.value.query);
  for (const [key, value] of Object.entries(values)) {
    if (value) query.set(key, value);
    else query.delete(key);
  }
  const search = query.toString();
  go(location.pathname + (search ? `?${search}` : ""), "replace");
}

/** Links to our own pages are followed here; all others by the browser. */
export function startRouter() {
  addEventListener("popstate", () => {
    route.value = read(location);
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const anchor = (event.target as Element).closest?.("a");
    if (!anchor || anchor.target || anchor.origin !== location.origin || !anchor.pathname.startsWith(`${BASE}/`)) return;
    event.preventDefault();
    go(anchor.pathname + anchor.search);
  });
}
