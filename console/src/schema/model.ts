// A JSON Schema as a form sees it: references followed, pieces merged, and one shape for each place. Pure.
import type { JsonSchema } from "../types";
import { fits } from "./validate";

export type Keys = { [key: string]: unknown };

/** What was typed and is not (yet) a value: half a number, broken JSON. Printed as it was typed. */
export class Unread {
  constructor(readonly text: string, readonly why: string) {}
  toJSON() {
    return this.text;
  }
}

export interface Option { value: unknown; label: string }
export interface Variant { label: string; schema: Keys }
export interface Property { name: string; schema: Keys; required: boolean }

export type Shape =
  | { kind: "text"; format?: string; long: boolean }
  | { kind: "number"; whole: boolean }
  | { kind: "boolean" }
  | { kind: "options"; options: Option[] }
  | { kind: "const"; value: unknown }
  | { kind: "object"; properties: Property[]; rest?: Keys }
  | { kind: "list"; fixed: Keys[]; item?: Keys; least: number; most: number }
  | { kind: "choice"; variants: Variant[] }
  | { kind: "null" }
  | { kind: "json" };

export type Shaped = Shape & { nullable: boolean };

/** How many references are followed, and how deep initial values go: schemas may refer to themselves. */
const HOPS = 32;
const DEPTH = 6;

/** How much work one question about a schema may be: a hostile one can ask for itself twice at every step. */
export interface Budget { left: number }

export function isObject(value: unknown): value is Keys {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Unread);
}

/** An own member; names like `constructor` are not to be found elsewhere. */
export function own(object: unknown, key: string): unknown {
  return isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** What `#/$defs/x` points at; undefined for what is elsewhere or missing. */
export function pointed(reference: string, root: JsonSchema): JsonSchema | undefined {
  if (reference === "#") return root;
  if (!reference.startsWith("#")) return undefined;
  if (!reference.startsWith("#/")) return anchored(reference.slice(1), root);
  let at: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const key = unescape(part);
    at = Array.isArray(at) ? at[Number(key)] : own(at, key);
  }
  return typeof at === "boolean" || isObject(at) ? at : undefined;
}

function unescape(part: string): string {
  try {
    part = decodeURIComponent(part);
  } catch {
    // a lone per cent sign is one
  }
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

function anchored(name: string, root: JsonSchema): JsonSchema | undefined {
  for (const defs of [own(root, "$defs"), own(root, "definitions")]) {
    if (!isObject(defs)) continue;
    for (const each of Object.values(defs)) if (own(each, "$anchor") === name) return each as Keys;
  }
  return undefined;
}

/** The schema with its reference followed and its `allOf` merged in; `{}` for `true`, `{not: {}}` for `false`. */
export function resolve(schema: unknown, root: JsonSchema, hops = HOPS, budget: Budget = { left: 500 }): Keys {
  if (schema === false) return { not: {} };
  if (!isObject(schema) || budget.left-- <= 0) return {};
  let whole = schema;
  if (typeof whole.$ref === "string") {
    const target = hops > 0 ? pointed(whole.$ref, root) : undefined;
    if (target === undefined) return {};
    const { $ref: _, ...beside } = whole;
    whole = merge(resolve(target, root, hops - 1, budget), beside);
  }
  if (Array.isArray(whole.allOf) && hops > 0) {
    const { allOf, ...beside } = whole;
    whole = (allOf as unknown[]).reduce<Keys>((sum, part) => merge(sum, resolve(part, root, hops - 1, budget)), beside);
  }
  return whole;
}

/** Both at once, as far as a form can tell: the second says more, properties and what is required are joined. */
export function merge(first: Keys, second: Keys): Keys {
  const both: Keys = { ...first, ...second };
  if (isObject(first.properties) && isObject(second.properties)) both.properties = { ...first.properties, ...second.properties };
  if (Array.isArray(first.required) && Array.isArray(second.required)) both.required = [...new Set([...first.required, ...second.required])];
  return both;
}

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

function types(schema: Keys): string[] {
  const said = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type): type is string => TYPES.includes(type as string));
  if (said.length) return said;
  if (isObject(schema.properties) || isObject(schema.additionalProperties) || Array.isArray(schema.required)) return ["object"];
  if (schema.items !== undefined || schema.prefixItems !== undefined) return ["array"];
  if (["minLength", "maxLength", "pattern", "format"].some((key) => key in schema)) return ["string"];
  if (["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"].some((key) => key in schema)) return ["number"];
  return [];
}

function words(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What kind of control a resolved schema wants. */
export function shape(schema: Keys, root: JsonSchema): Shaped {
  if ("const" in schema) return { kind: "const", value: schema.const, nullable: false };
  if (Array.isArray(schema.enum)) {
    const names = Array.isArray(schema.enumNames) ? (schema.enumNames as unknown[]) : [];
    const options = schema.enum.map((value, at) => ({ value: value as unknown, label: typeof names[at] === "string" ? names[at] : words(value) }));
    return { kind: "options", options, nullable: false };
  }
  for (const key of ["oneOf", "anyOf"] as const) {
    if (Array.isArray(schema[key])) {
      const found = chosen(schema, schema[key] as unknown[], key, root);
      if (found) return found;
    }
  }
  const all = types(schema);
  const nullable = all.length > 1 && all.includes("null");
  const rest = nullable ? all.filter((type) => type !== "null") : all;
  if (rest.length > 1) return { kind: "choice", nullable, variants: rest.map((type) => ({ label: type, schema: { ...schema, type } })) };
  return { ...single(rest[0], schema), nullable };
}

function chosen(schema: Keys, parts: unknown[], key: "oneOf" | "anyOf", root: JsonSchema): Shaped | undefined {
  const { [key]: _, ...base } = schema;
  let variants = parts.map((part) => resolve(part, root));
  // `oneOf: [{required: [a]}, {required: [b]}]` beside properties: one object, which is checked as a whole.
  if (isObject(base.properties) && variants.every((variant) => !isObject(variant.properties))) return undefined;
  const isNull = (variant: Keys) => variant.type === "null" || ("const" in variant && variant.const === null);
  const nullable = variants.some(isNull);
  variants = variants.filter((variant) => !isNull(variant));
  if (!variants.length) return { kind: "null", nullable: false };
  if (variants.every((variant) => "const" in variant)) {
    const options = variants.map((variant) => ({ value: variant.const, label: typeof variant.title === "string" ? variant.title : words(variant.const) }));
    return { kind: "options", options, nullable };
  }
  const { title: _t, description: _d, default: _f, ...shared } = base;
  if (variants.length === 1) return { ...shape(merge(shared, variants[0]!), root), nullable };
  return { kind: "choice", nullable, variants: variants.map((variant, at) => ({ label: named(variant, at, root), schema: merge(shared, variant) })) };
}

function named(variant: Keys, at: number, root: JsonSchema): string {
  if (typeof variant.title === "string") return variant.title;
  if (isObject(variant.properties)) {
    // What tells variants apart is most often a constant: {type: {const: "file"}, …}.
    for (const [name, property] of Object.entries(variant.properties)) {
      const value = resolve(property, root);
      if ("const" in value) return `${name}: ${words(value.const)}`;
    }
    const required = Array.isArray(variant.required) ? variant.required : Object.keys(variant.properties);
    if (required.length) return `with ${required.slice(0, 3).join(", ")}`;
  }
  const all = types(variant);
  if (all.length === 1 && all[0] !== "object") return typeof variant.format === "string" ? `${all[0]} (${variant.format})` : all[0]!;
  return `variant ${at + 1}`;
}

function single(type: string | undefined, schema: Keys): Shape {
  switch (type) {
    case "string": {
      const long = typeof schema.maxLength === "number" ? schema.maxLength > 200 : schema.format === "markdown" || schema.contentMediaType !== undefined;
      return typeof schema.format === "string" ? { kind: "text", format: schema.format, long } : { kind: "text", long };
    }
    case "number":
    case "integer":
      return { kind: "number", whole: type === "integer" };
    case "boolean":
    case "null":
      return { kind: type };
    case "object":
      return objectShape(schema);
    case "array":
      return listShape(schema);
    default:
      return { kind: "json" };
  }
}

function objectShape(schema: Keys): Shape {
  const required = Array.isArray(schema.required) ? (schema.required as unknown[]) : [];
  const declared = isObject(schema.properties) ? schema.properties : {};
  const names = [...Object.keys(declared), ...required.filter((name): name is string => typeof name === "string" && !Object.hasOwn(declared, name))];
  const properties = names.map((name) => ({ name, schema: asKeys(own(declared, name)), required: required.includes(name) }));
  const patterns = isObject(schema.patternProperties) ? Object.values(schema.patternProperties) : [];
  const extra = schema.additionalProperties ?? (patterns.length ? patterns[0] : undefined);
  if (isObject(extra)) return { kind: "object", properties, rest: extra };
  // An object of which nothing is said takes anything.
  if (!isObject(schema.properties) && !properties.length && extra !== false) return { kind: "object", properties, rest: {} };
  return { kind: "object", properties };
}

function listShape(schema: Keys): Shape {
  // Before 2020-12 a tuple was an array of `items`.
  const old = Array.isArray(schema.items);
  const fixed = (old ? schema.items : Array.isArray(schema.prefixItems) ? schema.prefixItems : []) as unknown[];
  const item = old ? schema.additionalItems : schema.items;
  const least = typeof schema.minItems === "number" ? schema.minItems : 0;
  const most = typeof schema.maxItems === "number" ? schema.maxItems : Infinity;
  const open = item !== false && !(fixed.length && item === undefined);
  return { kind: "list", fixed: fixed.map(asKeys), least, most, ...(open ? { item: asKeys(item) } : {}) };
}

function asKeys(schema: unknown): Keys {
  return schema === false ? { not: {} } : isObject(schema) ? schema : {};
}

/** What a form starts with: constants, defaults, first examples, and what must be there; undefined for nothing. */
export function initial(schema: unknown, root: JsonSchema, required: boolean, depth = 0, budget: Budget = { left: 2000 }): unknown {
  if (budget.left-- <= 0) return undefined;
  const known = resolve(schema, root);
  if (known.default !== undefined) return known.default;
  if (Array.isArray(known.examples) && known.examples.length) return known.examples[0];
  const form = shape(known, root);
  if (form.kind === "const") return required ? form.value : undefined;
  if (required && form.nullable) return null;
  if (depth > DEPTH) return undefined;
  switch (form.kind) {
    case "boolean":
      return required ? false : undefined;
    case "null":
      return required ? null : undefined;
    case "options":
      return required && form.options.length === 1 ? form.options[0]!.value : undefined;
    case "object": {
      const members = form.properties
        .map(({ name, schema, required }) => [name, initial(schema, root, required, depth + 1, budget)] as const)
        .filter(([, value]) => value !== undefined);
      const value = Object.fromEntries(members);
      // An object that nobody needs is only there if its defaults already make it whole.
      if (required) return value;
      return members.length && fits(known, value, root) ? value : undefined;
    }
    case "list": {
      if (!required) return undefined;
      const ends = Math.max(form.fixed.length, Math.min(form.least, 20));
      return Array.from({ length: ends }, (_, at) => initial(form.fixed[at] ?? form.item ?? {}, root, true, depth + 1, budget) ?? null);
    }
    case "choice":
      return required ? initial(form.variants[0]!.schema, root, true, depth + 1, budget) : undefined;
    default:
      return undefined;
  }
}

/** The variant that a value most likely is. */
export function variantOf(variants: Variant[], value: unknown, weigh: (schema: Keys, value: unknown) => number): number {
  let best = 0;
  let least = Infinity;
  variants.forEach((variant, at) => {
    const weight = weigh(variant.schema, value);
    if (weight < least) [best, least] = [at, weight];
  });
  return best;
}

/** The object with one member set, or with undefined taken out; declared members in their order, then the rest. */
export function withMember(value: unknown, name: string, member: unknown, order: string[]): Keys {
  const members = new Map(Object.entries(isObject(value) ? value : {}));
  if (member === undefined) members.delete(name);
  else members.set(name, member);
  const known = order.filter((each) => members.has(each));
  const others = [...members.keys()].filter((each) => !order.includes(each));
  return Object.fromEntries([...known, ...others].map((each) => [each, members.get(each)]));
}
