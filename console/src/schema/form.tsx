// A form made from a JSON Schema, or the same value as JSON: both say the same at any time.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JsonSchema } from "../types";
import { TextArea } from "../ui/field";
import { Entry, Forms } from "./entry";
import { readJson } from "./json";
import { initial as begin, resolve, shape } from "./model";
import { validate } from "./validate";

export interface FormProps {
  schema: JsonSchema;
  /** Starts from this; else from defaults and examples. */
  initial?: unknown;
  /** Told at the start and at every change; `problems` is empty if the value may be sent. */
  change: (value: unknown, problems: { path: string; message: string }[]) => void;
  /** Messages are shown at untouched fields too; set it once somebody tried to send. */
  strict?: boolean;
  /** Without the switch to JSON; for short questions. */
  plain?: boolean;
}

export function SchemaForm({ schema, initial, change, strict = false, plain = false }: FormProps) {
  const [value, setValue] = useState<unknown>(() => initial ?? begin(schema, schema, true));
  const [raw, setRaw] = useState<string | undefined>(undefined);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const form = useRef<HTMLDivElement>(null);
  const root = useMemo(() => shape(resolve(schema, schema), schema), [schema]);
  const problems = useMemo(() => validate(schema, value, schema), [schema, value]);
  const syntax = useMemo(() => (raw === undefined ? undefined : readJson(raw)), [raw]);

  const set = (next: unknown) => {
    setValue(next);
    change(next, validate(schema, next, schema));
  };
  useEffect(() => change(value, problems), []);

  const type = (text: string) => {
    setRaw(text);
    const read = readJson(text);
    if ("value" in read) set(read.value);
    else change(undefined, [{ path: "", message: `line ${read.line}: ${read.error}` }]);
  };
  const toForm = () => {
    if (syntax && "error" in syntax) form.current?.querySelector("textarea")?.focus();
    else setRaw(undefined);
  };
  const focus = (path: string) => {
    const place = [...(form.current?.querySelectorAll<HTMLElement>("[data-path]") ?? [])].filter((each) => path === each.dataset.path || path.startsWith(`${each.dataset.path}/`));
    place.at(-1)?.querySelector<HTMLElement>("input,select,textarea,button")?.focus();
  };

  const messages = useMemo(() => {
    const map = new Map<string, string>();
    for (const { path, message } of problems) if (!map.has(path)) map.set(path, message);
    return map;
  }, [problems]);
  const broken = syntax && "error" in syntax ? syntax : undefined;
  const nothing = root.kind === "object" && !root.properties.length && !root.rest;

  return (
    <div class="schema-form" ref={form}>
      {!plain && !nothing && (
        <div class="switch" role="group" aria-label="Input mode">
          <button type="button" aria-pressed={raw === undefined} onClick={toForm}>Form</button>
          <button type="button" aria-pressed={raw !== undefined} onClick={() => raw === undefined && setRaw(JSON.stringify(value ?? {}, null, 2))}>JSON</button>
        </div>
      )}
      {raw !== undefined ? (
        <TextArea
          label="Arguments as JSON"
          class="code"
          rows={Math.min(24, Math.max(6, raw.split("\n").length + 1))}
          value={raw}
          onInput={(event) => type(event.currentTarget.value)}
          error={broken ? `line ${broken.line}, column ${broken.column}: ${broken.error}` : strict || !problems.length ? undefined : describe(problems[0]!)}
        />
      ) : nothing ? (
        <p class="dim">No arguments.</p>
      ) : (
        <Forms.Provider value={{ root: schema, messages, shows: (path) => strict || touched.has(path), touch: (path) => touched.has(path) || setTouched(new Set([...touched, path])) }}>
          <Entry schema={typeof schema === "boolean" ? {} : schema} value={value} path="" name="" required depth={0} change={set} />
        </Forms.Provider>
      )}
      {strict && !broken && problems.length > 0 && (
        <div class="notice bad" role="alert">
          <p>{problems.length === 1 ? "One problem:" : `${problems.length} problems:`}</p>
          <ul>
            {problems.slice(0, 12).map((problem) => (
              <li key={problem.path + problem.message}>
                {raw === undefined && problem.path ? <button type="button" class="linkish" onClick={() => focus(problem.path)}>{describe(problem)}</button> : describe(problem)}
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

/** `/place/lat` → "place › lat is required". */
function describe({ path, message }: { path: string; message: string }): string {
  const place = path.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")).join(" › ");
  return place ? `${place} ${message}` : message;
}
