// One place of a form: its label, its words, and the control that its shape wants.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useId, useMemo } from "preact/hooks";
import type { JsonSchema } from "../types";
import { Field } from "../ui/field";
import { Long, Text } from "../ui/text";
import { BooleanControl, JsonControl, NumberControl, OptionsControl, TextControl } from "./controls";
import { Choice } from "./choice";
import { List } from "./list";
import { Members } from "./members";
import { type Keys, resolve, shape, type Shaped } from "./model";

export interface Place {
  schema: Keys;
  value: unknown;
  path: string;
  name: string;
  required: boolean;
  depth: number;
  change: (value: unknown) => void;
  /** A variant of a choice: its words were said already. */
  inner?: boolean;
  /** An entry of a list: it is there or not, so no mark says that it must be. */
  entry?: boolean;
}

export interface Known extends Place {
  known: Keys;
  form: Shaped;
  label: ComponentChildren;
  words: string;
}

export const Forms = createContext<{
  root: JsonSchema;
  messages: Map<string, string>;
  shows: (path: string) => boolean;
  touch: (path: string) => void;
}>({ root: true, messages: new Map(), shows: () => false, touch: () => {} });

/** Deeper than this a form helps nobody; it is then JSON. */
const DEEP = 10;

export function Entry(place: Place) {
  const { root } = useContext(Forms);
  const known = useMemo(() => resolve(place.schema, root), [place.schema, root]);
  const form = useMemo(() => (place.depth > DEEP ? ({ kind: "json", nullable: false } as const) : shape(known, root)), [known, root, place.depth]);
  const title = typeof known.title === "string" && known.title !== place.name ? known.title : undefined;
  const words = title ?? place.name;
  const label = title ? <><Text text={title} />{place.name && <code class="key"><Text text={place.name} /></code>}</> : <Text text={place.name} />;
  const all: Known = { ...place, known, form, label, words };
  switch (form.kind) {
    case "object":
      return <div data-path={place.path}><Members {...all} /></div>;
    case "list":
      return <div data-path={place.path}><List {...all} /></div>;
    case "choice":
      return <div data-path={place.path}><Choice {...all} /></div>;
    default:
      return <div data-path={place.path}><Single {...all} /></div>;
  }
}

function Single(place: Known) {
  const { messages, shows, touch } = useContext(Forms);
  const error = shows(place.path) ? messages.get(place.path) : undefined;
  if (place.form.kind === "const" || place.form.kind === "null") return <Fixed {...place} />;
  return (
    <div onFocusOut={() => touch(place.path)}>
      <Field label={place.label || "Value"} required={place.required && !place.entry} error={error} help={place.inner ? undefined : help(place.known)} control={(id, described) => {
        const common = { ...place, id, described, invalid: error !== undefined };
        const off = place.form.nullable && place.value === null;
        return (
          <div class="control">
            {off ? <input class="input" id={id} disabled value="null" /> : control(common)}
            {place.form.nullable && <NullBox off={off} words={place.words} set={(on) => place.change(on ? null : undefined)} />}
          </div>
        );
      }} />
    </div>
  );
}

export interface ControlProps extends Known {
  id: string;
  described: string | undefined;
  invalid: boolean;
}

function control(place: ControlProps) {
  switch (place.form.kind) {
    case "text":
      return <TextControl {...place} />;
    case "number":
      return <NumberControl {...place} />;
    case "boolean":
      return <BooleanControl {...place} />;
    case "options":
      return <OptionsControl {...place} />;
    default:
      return <JsonControl {...place} />;
  }
}

export function NullBox({ off, words, set }: { off: boolean; words: string; set: (on: boolean) => void }) {
  const id = useId();
  return (
    <span class="null">
      <input type="checkbox" id={id} checked={off} onChange={(event) => set(event.currentTarget.checked)} />
      <label for={id}>null<span class="sr"> for {words}</span></label>
    </span>
  );
}

/** A constant: there is nothing to type, at most whether it is sent. */
function Fixed(place: Known) {
  const id = useId();
  const value = place.form.kind === "const" ? place.form.value : null;
  return (
    <div class="field">
      {place.required ? <span class="label">{place.label}</span> : (
        <span class="null">
          <input type="checkbox" id={id} checked={place.value !== undefined} onChange={(event) => place.change(event.currentTarget.checked ? value : undefined)} />
          <label for={id} class="label">{place.label}</label>
        </span>
      )}
      <span><code><Text text={JSON.stringify(value)} /></code></span>
    </div>
  );
}

/** What a schema says of a value, and its bounds. */
export function help(known: Keys): ComponentChildren | undefined {
  const about = typeof known.description === "string" ? known.description : "";
  const limits = bounds(known);
  if (!about && !limits) return undefined;
  return <>{about && <Long text={about} limit={280} />}{limits && <span class="bounds">{about ? " " : ""}{limits}</span>}</>;
}

export function bounds(known: Keys): string {
  const number = (key: string) => (typeof known[key] === "number" ? (known[key] as number) : undefined);
  const parts: string[] = [];
  const [least, most] = [number("minimum"), number("maximum")];
  if (least !== undefined && most !== undefined) parts.push(`${least} to ${most}`);
  else if (least !== undefined) parts.push(`at least ${least}`);
  else if (most !== undefined) parts.push(`at most ${most}`);
  if (number("exclusiveMinimum") !== undefined) parts.push(`more than ${known.exclusiveMinimum}`);
  if (number("exclusiveMaximum") !== undefined) parts.push(`less than ${known.exclusiveMaximum}`);
  if (number("multipleOf") !== undefined) parts.push(`a multiple of ${known.multipleOf}`);
  if (number("minLength")) parts.push(`at least ${known.minLength} characters`);
  if (number("maxLength") !== undefined) parts.push(`at most ${known.maxLength} characters`);
  if (typeof known.pattern === "string" && known.pattern.length <= 80) parts.push(`matches ${known.pattern}`);
  return parts.length ? `(${parts.join(", ")})` : "";
}
