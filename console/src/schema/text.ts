// Patterns and formats of texts. A pattern comes from a server: one that could keep the page busy for ever is not tried.

/** Whether a repeated group itself repeats or offers a choice, as in `(a+)+`: exponential on some texts. */
function costly(pattern: string): boolean {
  const open = [false];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!;
    if (character === "\\") at++;
    else if (character === "[") {
      for (at++; at < pattern.length && pattern[at] !== "]"; at++) if (pattern[at] === "\\") at++;
    } else if (character === "(") open.push(false);
    else if (character === ")") {
      const varies = open.pop() ?? false;
      if (varies && /^(?:[+*]|\{\d*,)/.test(pattern.slice(at + 1, at + 8))) return true;
      if (varies && open.length) open[open.length - 1] = true;
    } else if ("+*{|".includes(character)) open[open.length - 1] = true;
  }
  return false;
}

/** Undefined also for a pattern that cannot be read or is not tried: the gateway has the last word. */
export function patternProblem(pattern: string, value: string): string | undefined {
  if (pattern.length > 500 || value.length > 2000 || costly(pattern)) return undefined;
  let expression: RegExp;
  try {
    expression = new RegExp(pattern, "u");
  } catch {
    try {
      expression = new RegExp(pattern);
    } catch {
      return undefined;
    }
  }
  return expression.test(value) ? undefined : `must match ${pattern}`;
}

const DATE = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const TIME = /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([zZ]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

function isDate(value: string): boolean {
  // 30 February has the form of a date and is none.
  return DATE.test(value) && new Date(`${value}T00:00:00Z`).toISOString().startsWith(value);
}

function isUri(value: string): boolean {
  return /^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]*$/i.test(value);
}

const FORMATS: Record<string, [(value: string) => boolean, string]> = {
  email: [(value) => /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)*$/.test(value), "must be an e-mail address, as ada@example.com"],
  uri: [isUri, "must be a URI with its scheme, as https://example.com/"],
  url: [isUri, "must be a URL, as https://example.com/"],
  date: [isDate, "must be a date, as 2026-07-28"],
  time: [(value) => TIME.test(value), "must be a time with its offset, as 12:30:00Z"],
  "date-time": [(value) => /[tT ]/.test(value[10] ?? "") && isDate(value.slice(0, 10)) && TIME.test(value.slice(11)), "must be a date and a time with its offset, as 2026-07-28T12:30:00Z"],
  uuid: [(value) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value), "must be a UUID"],
  ipv4: [(value) => /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?!$)|$)){4}$/.test(value), "must be an IPv4 address, as 192.0.2.1"],
};

/** Undefined for formats that are not known. */
export function formatProblem(format: string, value: string): string | undefined {
  const known = Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  return known && !known[0](value) ? known[1] : undefined;
}
