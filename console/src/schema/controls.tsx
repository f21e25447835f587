// The controls for single values. An empty one is no value at all.
import { useEffect, useState } from "preact/hooks";
import { plain } from "../words";
import type { ControlProps } from "./entry";
import { readJson } from "./json";
import { Unread } from "./model";
import { formatProblem } from "./text";
import { same } from "./validate";

/** Texts of such names tend to have lines. */
const LINES = /(text|content|body|message|code|script|prompt|query|markdown|html|json|diff|patch|sql|input|thought)s?$/i;

const INPUT: Record<string, string> = { email: "email", uri: "url", url: "url", date: "date", password: "password" };
const EXAMPLES: Record<string, string> = { "date-time": "2026-07-28T12:30:00Z", time: "12:30:00Z", email: "ada@example.com", uri: "https://example.com/", uuid: "00000000-0000-4000-8000-000000000000" };

function shared({ id, described, invalid, required }: ControlProps) {
  return { id, class: "input", "aria-describedby": described, "aria-invalid": invalid || undefined, "aria-required": required || undefined } as const;
}

export function TextControl(place: ControlProps) {
  const { form, value, change, known, name } = place;
  if (form.kind !== "text") return null;
  const text = typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
  const input = (event: { currentTarget: { value: string } }) => change(event.currentTarget.value === "" ? undefined : event.currentTarget.value);
  const lines = form.long || text.includes("\n") || (!form.format && known.maxLength === undefined && LINES.test(name));
  if (lines) return <textarea {...shared(place)} class="input growing" rows={form.long ? 4 : 2} value={text} onInput={input} />;
  let type = INPUT[form.format ?? ""] ?? "text";
  // A date field shows nothing for what is not a date; what was typed must not vanish.
  if (type === "date" && text && formatProblem("date", text)) type = "text";
  return <input {...shared(place)} type={type as "text"} autocomplete="off" spellcheck={false} value={text} placeholder={EXAMPLES[form.format ?? ""] && `as ${EXAMPLES[form.format ?? ""]}`} onInput={input} />;
}

export function NumberControl(place: ControlProps) {
  const { form, value, change } = place;
  const whole = form.kind === "number" && form.whole;
  const [text, setText] = useState(() => shown(value));
  // "1." is 1 and must stay as it is while somebody types; a value from elsewhere is taken over.
  useEffect(() => {
    if (!same(read(text, whole), value)) setText(shown(value));
  }, [value]);
  return (
    <input {...shared(place)} type="text" inputMode={whole ? "numeric" : "decimal"} autocomplete="off" value={text} onInput={(event) => {
      setText(event.currentTarget.value);
      change(read(event.currentTarget.value, whole));
    }} />
  );
}

function shown(value: unknown): string {
  return value === undefined || value === null ? "" : value instanceof Unread ? value.text : typeof value === "string" ? value : JSON.stringify(value);
}

function read(text: string, whole: boolean): unknown {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  const value = Number(trimmed);
  if (!Number.isFinite(value) || !/^[+-]?(\d|\.\d)/.test(trimmed) || /^[+-]?0[xob]/i.test(trimmed)) return new Unread(text, whole ? "must be an integer" : "must be a number");
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return new Unread(text, "is too large for a browser to send exactly");
  return value;
}

export function BooleanControl(place: ControlProps) {
  const { value, change, known, required, form } = place;
  // A box is on or off; where neither may be meant there are three choices.
  if (required || known.default !== undefined) {
    return <input {...shared(place)} class="" type="checkbox" checked={value === true} onChange={(event) => change(event.currentTarget.checked)} />;
  }
  return (
    <select {...shared(place)} onChange={(event) => change(event.currentTarget.value === "" ? undefined : event.currentTarget.value === "true")}>
      <option value="" selected={value === undefined || (form.nullable && value === null)}>not set</option>
      <option value="true" selected={value === true}>true</option>
      <option value="false" selected={value === false}>false</option>
    </select>
  );
}

export function OptionsControl(place: ControlProps) {
  const { form, value, change, required } = place;
  if (form.kind !== "options") return null;
  const at = value === undefined ? -1 : form.options.findIndex((option) => same(option.value, value));
  return (
    <select {...shared(place)} onChange={(event) => change(form.options[Number(event.currentTarget.value)]?.value)}>
      <option value="-1" selected={at < 0}>{value !== undefined && at < 0 ? JSON.stringify(value) : required ? "choose…" : "not set"}</option>
      {form.options.map((option, index) => <option key={index} value={String(index)} selected={index === at}>{plain(option.label)}</option>)}
    </select>
  );
}

export function JsonControl(place: ControlProps) {
  const { value, change } = place;
  const [text, setText] = useState(() => written(value));
  useEffect(() => {
    if (!same(parse(text), value)) setText(written(value));
  }, [value]);
  return (
    <textarea {...shared(place)} class="input code growing" rows={2} spellcheck={false} placeholder="JSON" value={text} onInput={(event) => {
      setText(event.currentTarget.value);
      change(parse(event.currentTarget.value));
    }} />
  );
}

function written(value: unknown): string {
  return value === undefined ? "" : value instanceof Unread ? value.text : JSON.stringify(value, null, 2);
}

function parse(text: string): unknown {
  if (!text.trim()) return undefined;
  const found = readJson(text);
  return "value" in found ? found.value : new Unread(text, `is not JSON: line ${found.line}, ${found.error}`);
}
