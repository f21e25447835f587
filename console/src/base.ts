// Where the gateway is: at the root of its origin, or below a path prefix that a reverse proxy put in front of it. The address of
// this script tells.
const SCRIPT = "/console/app.js";
const here = import.meta.url.startsWith("http") ? new URL(import.meta.url).pathname : "";

/** The path prefix, without a slash at its end; empty at the root. */
export const PREFIX = here.endsWith(SCRIPT) ? here.slice(0, -SCRIPT.length) : "";

/** The address of the gateway, as clients are told it. */
export const gateway = (): string => location.origin + PREFIX;
