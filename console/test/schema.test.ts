// The pure part of forms: what is offered, what is sent, what is wrong.
import { test } from "node:test";
import assert from "node:assert/strict";
import { initial, merge, resolve, shape, Unread, variantOf, withMember } from "../src/schema/model";
import { distance, fits, validate } from "../src/schema/validate";
import { readJson } from "../src/schema/json";
import { patternProblem } from "../src/schema/text";
import type { JsonSchema } from "../src/types";

const wrong = (schema: JsonSchema, value: unknown) => validate(schema, value, schema).map(({ path, message }) => `${path} ${message}`);
const kind = (schema: JsonSchema) => shape(resolve(schema, schema), schema);

test("what is optional and has no default is not sent", () => {
  const schema = { type: "object", required: ["a"], properties: { a: { type: "string" }, b: { type: "string" }, c: { type: "integer", default: 3 }, d: { type: "boolean" } } };
  assert.deepEqual(initial(schema, schema, true), { c: 3 });
});

test("constants, examples and what must be there are filled in", () => {
  const schema = {
    type: "object",
    required: ["kind", "loud", "place", "list", "none"],
    properties: {
      kind: { const: "x" }, loud: { type: "boolean" }, name: { type: "string", examples: ["Ada"] }, place: { type: "object", properties: { unit: { default: "C" } } },
      list: { type: "array", minItems: 1, items: { type: "string", default: "a" } }, none: { type: ["string", "null"] },
    },
  };
  assert.deepEqual(initial(schema, schema, true), { kind: "x", loud: false, name: "Ada", place: { unit: "C" }, list: ["a"], none: null });
});

test("an optional object is left out unless its defaults make it whole", () => {
  const half = { type: "object", properties: { place: { type: "object", required: ["lat"], properties: { lat: { type: "number" }, unit: { default: "C" } } } } };
  assert.deepEqual(initial(half, half, true), {});
  const whole = { type: "object", properties: { place: { type: "object", required: ["unit"], properties: { unit: { default: "C" } } } } };
  assert.deepEqual(initial(whole, whole, true), { place: { unit: "C" } });
});

test("a schema that needs itself comes to an end", () => {
  const schema: JsonSchema = { $ref: "#/$defs/node", $defs: { node: { type: "object", required: ["next"], properties: { next: { $ref: "#/$defs/node" } } } } };
  assert.ok(JSON.stringify(initial(schema, schema, true)).length < 200);
  const loop: JsonSchema = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
  assert.equal(kind(loop).kind, "json");
  assert.deepEqual(wrong(loop, 1), []);
});

test("a reference is followed with what stands beside it, and allOf is one", () => {
  const root: JsonSchema = { $defs: { "a/b": { type: "string", title: "A" } } };
  assert.deepEqual(resolve({ $ref: "#/$defs/a~1b", title: "B" }, root), { type: "string", title: "B" });
  assert.deepEqual(resolve({ allOf: [{ properties: { a: {} }, required: ["a"] }, { properties: { b: {} }, required: ["b"] }] }, root), { properties: { a: {}, b: {} }, required: ["a", "b"] });
  assert.deepEqual(merge({ title: "x" }, { title: "y" }), { title: "y" });
  assert.deepEqual(resolve({ $ref: "https://example.com/schema" }, root), {});
});

test("each schema gets the control that fits", () => {
  assert.deepEqual(kind({ type: "string", format: "date" }), { kind: "text", format: "date", long: false, nullable: false });
  assert.deepEqual(kind({ type: ["string", "null"] }), { kind: "text", long: false, nullable: true });
  assert.deepEqual(kind({ type: "integer" }), { kind: "number", whole: true, nullable: false });
  assert.deepEqual(kind({ enum: ["a", 1] }), { kind: "options", options: [{ value: "a", label: "a" }, { value: 1, label: "1" }], nullable: false });
  assert.deepEqual(kind({ oneOf: [{ const: "s", title: "Small" }, { const: "l" }, { type: "null" }] }), { kind: "options", options: [{ value: "s", label: "Small" }, { value: "l", label: "l" }], nullable: true });
  assert.deepEqual(kind({ type: "object", additionalProperties: { type: "string" } }), { kind: "object", properties: [], rest: { type: "string" }, nullable: false });
  assert.deepEqual(kind({ type: "array", prefixItems: [{ type: "string" }] }), { kind: "list", fixed: [{ type: "string" }], least: 0, most: Infinity, nullable: false });
  assert.equal(kind({}).kind, "json");
  assert.equal(kind(true).kind, "json");
  assert.equal(kind({ properties: { a: {} } }).kind, "object");
});

test("variants are named by what tells them apart", () => {
  const found = kind({ oneOf: [{ type: "object", properties: { type: { const: "file" } } }, { type: "object", title: "Web" }, { type: "string" }, { type: "object", properties: { a: {} }, required: ["a"] }] });
  assert.deepEqual(found.kind === "choice" && found.variants.map((variant) => variant.label), ["type: file", "Web", "string", "with a"]);
});

test("alternatives of what is required leave one object", () => {
  const schema: JsonSchema = { type: "object", properties: { a: { type: "string" }, b: { type: "string" } }, anyOf: [{ required: ["a"] }, { required: ["b"] }] };
  assert.equal(kind(schema).kind, "object");
  assert.deepEqual(wrong(schema, {}), ["/a is required"]);
  assert.deepEqual(wrong(schema, { b: "x" }), []);
});

test("the variant that a value is gets found", () => {
  const variants = [{ label: "a", schema: { type: "object", properties: { type: { const: "a" } }, required: ["type"] } }, { label: "b", schema: { type: "object", properties: { type: { const: "b" } }, required: ["type", "more"] } }];
  assert.equal(variantOf(variants, { type: "b" }, (schema, value) => distance(schema, value, true)), 1);
});

test("what is wrong is said at its place", () => {
  const schema = {
    type: "object",
    required: ["name"],
    additionalProperties: false,
    properties: {
      name: { type: "string", minLength: 3, pattern: "^[a-z]+$" }, age: { type: "integer", minimum: 0, exclusiveMaximum: 150 }, step: { multipleOf: 0.1 },
      tags: { type: "array", items: { type: "string" }, maxItems: 2, uniqueItems: true }, mail: { type: "string", format: "email" }, "a/b": { type: "null" },
    },
  };
  assert.deepEqual(wrong(schema, {}), ["/name is required"]);
  assert.deepEqual(wrong(schema, { name: "A", age: 1.5 }), ["/name must have at least 3 characters", "/name must match ^[a-z]+$", "/age must be an integer"]);
  assert.deepEqual(wrong(schema, { name: "ada", age: 150, step: 0.35, tags: ["a", "a", 1], mail: "x", "a/b": 0, more: 1 }), [
    "/age must be less than 150", "/step must be a multiple of 0.1", "/tags must have at most 2 entries", "/tags must not have the same entry twice",
    "/tags/2 must be a string", "/mail must be an e-mail address, as ada@example.com", "/a~1b must be null", "/more is not an allowed property",
  ]);
  assert.deepEqual(wrong(schema, { name: "ada", step: 0.3, age: 0 }), []);
});

test("what could not be read is wrong wherever it is", () => {
  assert.deepEqual(wrong({ properties: { n: { type: "number" } } }, { n: new Unread("1e", "is not a number") }), ["/n is not a number"]);
  assert.equal(JSON.stringify({ n: new Unread("1e", "") }), '{"n":"1e"}');
});

test("of several variants the nearest is told of", () => {
  const schema = { oneOf: [{ type: "object", required: ["path"], properties: { kind: { const: "file" }, path: { type: "string" } } }, { type: "object", required: ["url"], properties: { kind: { const: "web" }, url: { type: "string", format: "uri" } } }] };
  assert.deepEqual(wrong(schema, { kind: "web", url: "x" }), ["/url must be a URI with its scheme, as https://example.com/"]);
});

test("names from Object's prototype are no members", () => {
  assert.deepEqual(wrong({ type: "object", required: ["constructor", "toString"] }, {}), ["/constructor is required", "/toString is required"]);
  assert.equal(fits({ type: "object", properties: JSON.parse('{"__proto__":{"type":"string"}}') }, JSON.parse('{"__proto__":1}'), true), false);
});

test("a pattern that could take for ever is not tried", () => {
  const start = Date.now();
  for (const pattern of ["^(a+)+$", "^(a|aa)+$", "^([a-z]+)*$", "(x+x+)+y", "^((a+)b?)+$"]) assert.equal(patternProblem(pattern, `${"a".repeat(40)}!`), undefined);
  assert.ok(Date.now() - start < 500);
  assert.equal(patternProblem("[", "x"), undefined);
});

test("formats are checked", () => {
  const of = (format: string, value: string) => fits({ type: "string", format }, value, true);
  assert.deepEqual(["2026-02-28", "2026-02-30", "26-1-1"].map((value) => of("date", value)), [true, false, false]);
  assert.deepEqual(["2026-07-28T12:30:00Z", "2026-07-28T12:30", "2026-07-28 12:30:00+02:00"].map((value) => of("date-time", value)), [true, false, true]);
  assert.deepEqual(["https://x/", "x", "mailto:a@b"].map((value) => of("uri", value)), [true, false, true]);
  assert.equal(of("no-such-format", "x"), true);
});

test("members keep the order in which they are declared", () => {
  assert.equal(JSON.stringify(withMember({ z: 1, b: 2 }, "a", 0, ["a", "b"])), '{"a":0,"b":2,"z":1}');
  assert.deepEqual(withMember({ a: 1 }, "a", undefined, ["a"]), {});
  assert.deepEqual(withMember(undefined, "a", 1, []), { a: 1 });
});

test("broken JSON says where, in the same words everywhere", () => {
  assert.deepEqual(readJson('{"a": 1}'), { value: { a: 1 } });
  assert.deepEqual(readJson('{\n  "a": 1,\n  b: 2\n}'), { error: 'expected a name in "quotes", found "b"', line: 3, column: 3 });
  assert.deepEqual(readJson('{"a": 1'), { error: "expected , or }, found the end", line: 1, column: 8 });
  assert.deepEqual(readJson('["a'), { error: 'expected a closing ", found the end', line: 1, column: 4 });
  assert.deepEqual(readJson("[1] x"), { error: 'expected nothing more, found "x"', line: 1, column: 5 });
  assert.deepEqual(readJson(""), { error: "expected a value, found the end", line: 1, column: 1 });
  assert.ok("error" in readJson(`"${"a".repeat(10_000)}`));
});

test("a schema made to take long does not", () => {
  const start = Date.now();
  const $defs: Record<string, unknown> = {};
  for (let at = 0; at < 40; at++) $defs[`a${at}`] = { allOf: [{ $ref: `#/$defs/a${at + 1}` }, { $ref: `#/$defs/a${at + 1}` }], anyOf: [{ $ref: `#/$defs/a${at + 1}` }, { $ref: `#/$defs/a${at + 1}` }] };
  const twice: JsonSchema = { $ref: "#/$defs/a0", $defs };
  const wide: JsonSchema = { type: "object", required: [..."abcdefghij"], properties: Object.fromEntries([..."abcdefghij"].map((name) => [name, { $ref: "#" }])) };
  for (const schema of [twice, wide]) {
    const value = initial(schema, schema, true);
    validate(schema, value ?? {}, schema);
    kind(schema);
  }
  assert.ok(Date.now() - start < 3000, `${Date.now() - start} ms`);
});
