// Whether a value fits a JSON Schema, with a message for each place where it does not. The gateway has the last word; this
// one is for the form, so what it does not know it lets pass. Pure.
import type { JsonSchema } from "../types";
import { type Budget, isObject, type Keys, own, pointed, resolve, Unread } from "./model";
import { formatProblem, patternProblem } from "./text";

/** `path` is a JSON pointer. */
export interface Wrong { path: string; message: string; weight: number }

const DEPTH = 48;

/** How many places are looked at; what is left then passes. */
const WORK = 50_000;

export function validate(schema: unknown, value: unknown, root: JsonSchema, budget: Budget = { left: WORK }): Wrong[] {
  const found: Wrong[] = [];
  check(schema, value, "", { root, budget }, found, 0);
  return found;
}

export function fits(schema: unknown, value: unknown, root: JsonSchema, budget?: Budget): boolean {
  return validate(schema, value, root, budget).length === 0;
}

interface Within { root: JsonSchema; budget: Budget }

/** How far a value is from a schema; a wrong constant or kind weighs more than a missing member. */
export function distance(schema: unknown, value: unknown, root: JsonSchema): number {
  return validate(schema, value, root).reduce((sum, wrong) => sum + wrong.weight, 0);
}

export function step(path: string, key: string | number): string {
  return `${path}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Equality of JSON values; the order of members does not matter. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, at) => same(each, b[at]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

function check(schema: unknown, value: unknown, path: string, within: Within, found: Wrong[], depth: number) {
  const wrong = (message: string, weight = 1) => void found.push({ path, message, weight });
  if (value instanceof Unread) return wrong(value.why, 5);
  if (schema === false) return wrong("no value is allowed", 5);
  if (!isObject(schema) || depth > DEPTH || within.budget.left-- <= 0) return;
  const deeper = (part: unknown, member: unknown, at: string) => check(part, member, at, within, found, depth + 1);

  if (typeof schema.$ref === "string") {
    const target = pointed(schema.$ref, within.root);
    if (target !== undefined) deeper(target, value, path);
  }
  if (!ofType(schema.type, value)) return wrong(`must be ${kinds(schema.type)}`, 5);
  if ("const" in schema && !same(schema.const, value)) wrong(`must be ${JSON.stringify(schema.const)}`, 10);
  if (Array.isArray(schema.enum) && !schema.enum.some((each) => same(each, value))) {
    wrong(`must be one of ${schema.enum.slice(0, 12).map((each) => JSON.stringify(each)).join(", ")}`, 5);
  }
  if (typeof value === "string") strings(schema, value, wrong);
  else if (typeof value === "number") numbers(schema, value, wrong);
  else if (Array.isArray(value)) lists(schema, value, path, wrong, deeper, within);
  else if (isObject(value)) objects(schema, value, path, wrong, deeper, within, found);
  combined(schema, value, path, within, found, deeper, wrong);
}

type Say = (message: string, weight?: number) => void;
type Deeper = (schema: unknown, value: unknown, path: string) => void;

function ofType(type: unknown, value: unknown): boolean {
  if (type === undefined) return true;
  if (Array.isArray(type)) return type.some((each) => ofType(each, value));
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return typeof value === "number" && Number.isInteger(value);
    case "string":
    case "number":
    case "boolean":
      return typeof value === type;
    default:
      return true;
  }
}

const KINDS: Record<string, string> = { string: "a string", number: "a number", integer: "an integer", boolean: "a boolean", object: "an object", array: "an array", null: "null" };

function kinds(type: unknown): string {
  return (Array.isArray(type) ? type : [type]).map((each) => KINDS[String(each)] ?? String(each)).join(" or ");
}

function strings(schema: Keys, value: string, wrong: Say) {
  const length = [...value].length;
  if (typeof schema.minLength === "number" && length < schema.minLength) {
    wrong(schema.minLength === 1 ? "must not be empty" : `must have at least ${schema.minLength} characters`);
  }
  if (typeof schema.maxLength === "number" && length > schema.maxLength) wrong(`must have at most ${schema.maxLength} characters, not ${length}`);
  if (typeof schema.pattern === "string") {
    const problem = patternProblem(schema.pattern, value);
    if (problem) wrong(problem);
  }
  if (typeof schema.format === "string") {
    const problem = formatProblem(schema.format, value);
    if (problem) wrong(problem);
  }
}

function numbers(schema: Keys, value: number, wrong: Say) {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (typeof minimum === "number" && (exclusiveMinimum === true ? value <= minimum : value < minimum)) wrong(exclusiveMinimum === true ? `must be greater than ${minimum}` : `must be at least ${minimum}`);
  if (typeof maximum === "number" && (exclusiveMaximum === true ? value >= maximum : value > maximum)) wrong(exclusiveMaximum === true ? `must be less than ${maximum}` : `must be at most ${maximum}`);
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) wrong(`must be greater than ${exclusiveMinimum}`);
  if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) wrong(`must be less than ${exclusiveMaximum}`);
  if (typeof multipleOf === "number" && multipleOf > 0) {
    const times = value / multipleOf;
    if (Math.abs(times - Math.round(times)) > 1e-9 * Math.max(1, Math.abs(times))) wrong(`must be a multiple of ${multipleOf}`);
  }
}

function lists(schema: Keys, value: unknown[], path: string, wrong: Say, deeper: Deeper, { root, budget }: Within) {
  if (typeof schema.minItems === "number" && value.length < schema.minItems) wrong(`must have at least ${schema.minItems} ${schema.minItems === 1 ? "entry" : "entries"}`);
  if (typeof schema.maxItems === "number" && value.length > schema.maxItems) wrong(`must have at most ${schema.maxItems} ${schema.maxItems === 1 ? "entry" : "entries"}`);
  if (schema.uniqueItems === true) {
    const seen = new Set(value.map((each) => JSON.stringify(each)));
    if (seen.size < value.length) wrong("must not have the same entry twice");
  }
  const old = Array.isArray(schema.items);
  const fixed = (old ? schema.items : Array.isArray(schema.prefixItems) ? schema.prefixItems : []) as unknown[];
  const item = old ? schema.additionalItems : schema.items;
  value.forEach((each, at) => deeper(at < fixed.length ? fixed[at] : item, each, step(path, at)));
  if (schema.contains !== undefined && !value.some((each) => fits(schema.contains, each, root, budget))) wrong("must contain a matching entry");
}

function objects(schema: Keys, value: Keys, path: string, wrong: Say, deeper: Deeper, { root, budget }: Within, found: Wrong[]) {
  const names = Object.keys(value);
  if (Array.isArray(schema.required)) {
    for (const name of schema.required) {
      if (typeof name === "string" && own(value, name) === undefined) found.push({ path: step(path, name), message: "is required", weight: 1 });
    }
  }
  if (typeof schema.minProperties === "number" && names.length < schema.minProperties) wrong(`must have at least ${schema.minProperties} members`);
  if (typeof schema.maxProperties === "number" && names.length > schema.maxProperties) wrong(`must have at most ${schema.maxProperties} members`);
  const patterns = isObject(schema.patternProperties) ? Object.entries(schema.patternProperties) : [];
  for (const name of names) {
    const declared = own(schema.properties, name);
    let known = declared !== undefined;
    if (known) deeper(declared, value[name], step(path, name));
    for (const [pattern, part] of patterns) {
      if (patternProblem(pattern, name)) continue;
      known = true;
      deeper(part, value[name], step(path, name));
    }
    if (!known && schema.additionalProperties === false) found.push({ path: step(path, name), message: "is not an allowed property", weight: 2 });
    else if (!known && schema.additionalProperties !== undefined) deeper(schema.additionalProperties, value[name], step(path, name));
    if (schema.propertyNames !== undefined && !fits(schema.propertyNames, name, root, budget)) found.push({ path: step(path, name), message: "is not an allowed property name", weight: 1 });
  }
  if (isObject(schema.dependentRequired)) {
    for (const [name, needed] of Object.entries(schema.dependentRequired)) {
      if (own(value, name) === undefined || !Array.isArray(needed)) continue;
      for (const other of needed) if (own(value, String(other)) === undefined) found.push({ path: step(path, String(other)), message: `is required with ${name}`, weight: 1 });
    }
  }
}

function combined(schema: Keys, value: unknown, path: string, { root, budget }: Within, found: Wrong[], deeper: Deeper, wrong: Say) {
  if (Array.isArray(schema.allOf)) for (const part of schema.allOf) deeper(part, value, path);
  for (const key of ["anyOf", "oneOf"] as const) {
    if (!Array.isArray(schema[key]) || !schema[key].length) continue;
    const results = (schema[key] as unknown[]).map((part) => validate(part, value, root, budget));
    const good = results.filter((result) => !result.length).length;
    if (!good) {
      // The nearest variant is the one that was meant; what it lacks is what to say.
      const weigh = (result: Wrong[]) => result.reduce((sum, each) => sum + each.weight, 0);
      const nearest = results.reduce((best, result) => (weigh(result) < weigh(best) ? result : best));
      const constants = (schema[key] as unknown[]).map((part) => resolve(part, root)).every((part) => "const" in part);
      if (constants) wrong("must match one of the variants", 5);
      else for (const each of nearest) found.push({ ...each, path: path + each.path });
    } else if (key === "oneOf" && good > 1) wrong(`matches ${good} variants; exactly one must match`);
  }
  if (schema.not !== undefined && fits(schema.not, value, root, budget)) wrong(isObject(schema.not) && !Object.keys(schema.not).length ? "no value is allowed" : "must not match the schema in `not`");
  if (schema.if !== undefined) {
    const then = fits(schema.if, value, root, budget) ? schema.then : schema.else;
    if (then !== undefined) deeper(then, value, path);
  }
}
