// A schema to read: names, kinds, what must be there, and what is said of each.
import { useState } from "preact/hooks";
import type { JsonSchema } from "../types";
import { Long, Text } from "../ui/text";
import { bounds } from "./entry";
import { type Keys, resolve, shape } from "./model";

export function Outline({ schema }: { schema: JsonSchema }) {
  const known = resolve(schema, schema);
  const form = shape(known, schema);
  if (form.kind === "object" && !form.properties.length && !form.rest) return <p class="dim">Nothing.</p>;
  return <Inside known={known} root={schema} />;
}

function Inside({ known, root }: { known: Keys; root: JsonSchema }) {
  const form = shape(known, root);
  switch (form.kind) {
    case "object":
      return (
        <ul class="outline">
          {form.properties.map((property) => <Line key={property.name} name={property.name} schema={property.schema} required={property.required} root={root} />)}
          {form.rest && <Line name="any other name" schema={form.rest} required={false} root={root} />}
        </ul>
      );
    case "list":
      return (
        <ul class="outline">
          {form.fixed.map((each, at) => <Line key={at} name={`${at + 1}.`} schema={each} required root={root} />)}
          {form.item && <Line name="each" schema={form.item} required={false} root={root} />}
        </ul>
      );
    case "choice":
      return <ul class="outline">{form.variants.map((variant, at) => <Line key={at} name={variant.label} schema={variant.schema} required={false} root={root} />)}</ul>;
    default:
      return <p>{kindWords(known, root)}</p>;
  }
}

function Line({ name, schema, required, root }: { name: string; schema: Keys; required: boolean; root: JsonSchema }) {
  const [open, setOpen] = useState(false);
  const known = resolve(schema, root);
  const form = shape(known, root);
  const deep = (form.kind === "object" && form.properties.length > 0) || form.kind === "choice" || (form.kind === "list" && [...form.fixed, form.item ?? {}].some((each) => nested(resolve(each, root), root)));
  return (
    <li>
      <p>
        <code><Text text={name} /></code>{required && <span class="required" title="required"> *<span class="sr"> required</span></span>} <span class="dim"><Text text={kindWords(known, root)} /> {bounds(known)}</span>
        {known.default !== undefined && <span class="dim"> default <code><Text text={JSON.stringify(known.default).slice(0, 200)} /></code></span>}
        {deep && <> <button type="button" class="linkish" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "less" : "more"}</button></>}
      </p>
      {typeof known.description === "string" && <p class="help"><Long text={known.description} limit={300} /></p>}
      {open && <Inside known={known} root={root} />}
    </li>
  );
}

function nested(known: Keys, root: JsonSchema): boolean {
  const { kind } = shape(known, root);
  return kind === "object" || kind === "list" || kind === "choice";
}

function kindWords(known: Keys, root: JsonSchema, depth = 0): string {
  const form = shape(known, root);
  const or = form.nullable ? " or null" : "";
  switch (form.kind) {
    case "text":
      return (form.format ? `string (${form.format})` : "string") + or;
    case "number":
      return (form.whole ? "integer" : "number") + or;
    case "boolean":
      return `boolean${or}`;
    case "options":
      return `one of ${form.options.slice(0, 12).map((option) => JSON.stringify(option.value)).join(", ")}${form.options.length > 12 ? ", …" : ""}${or}`;
    case "const":
      return JSON.stringify(form.value);
    case "list":
      return (form.item && !form.fixed.length && depth < 3 ? `array of ${kindWords(resolve(form.item, root), root, depth + 1)}` : "array") + or;
    case "choice":
      return `one of ${form.variants.length} variants${or}`;
    case "json":
      return "any value";
    default:
      return form.kind + or;
  }
}
