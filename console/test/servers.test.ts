import assert from "node:assert/strict";
import { test } from "node:test";
import { BLANK, written } from "../src/servers/draft";
import { decisions, isApproval, pretty, shown, without } from "../src/ui/approval";
import type { PendingRequest } from "../src/types";

test("a form says nothing before there is a name and a program or URL", () => {
  assert.equal(written(BLANK), undefined);
  assert.equal(written({ ...BLANK, name: "a" }), undefined);
  assert.equal(written({ ...BLANK, program: "npx" }), undefined);
});

test("each line is an argument as it stands", () => {
  const text = written({ ...BLANK, name: "a", program: "npx", args: "-y\nmy files\n  two\n", folder: "/x", variables: [{ name: "KEY", value: "1" }, { name: " ", value: "dropped" }] });
  assert.deepEqual(JSON.parse(text!), { mcpServers: { a: { command: "npx", args: ["-y", "my files", "  two"], cwd: "/x", env: { KEY: "1" } } } });
});

test("of a URL only what belongs to one is written", () => {
  const text = written({ ...BLANK, name: "a", kind: "url", url: " https://x.example/mcp ", program: "npx", headers: [{ name: "X-Team", value: "blue" }] });
  assert.deepEqual(JSON.parse(text!), { mcpServers: { a: { url: "https://x.example/mcp", headers: { "X-Team": "blue" } } } });
});

const request = (schema: PendingRequest["schema"], kind: PendingRequest["kind"] = "approval"): PendingRequest => ({ id: "q", kind, since: "", caller: "c", message: "", schema });

test("decisions are read in both spellings", () => {
  assert.deepEqual(decisions(request({ properties: { decision: { oneOf: [{ const: "once", title: "Approve once" }] } } })), [{ value: "once", title: "Approve once" }]);
  assert.deepEqual(decisions(request({ properties: { decision: { enum: ["once"], enumNames: ["Approve once"] } } })), [{ value: "once", title: "Approve once" }]);
});

test("a server cannot dress its request up as an approval", () => {
  assert.equal(isApproval(request({ properties: { decision: { enum: ["once"] } } }, "server")), false);
});

test("only what surely is the arguments is taken off the message", () => {
  assert.equal(without('may it?\n\n{"a":1}', '{"a": 1}'), "may it?");
  assert.equal(without('may it?\n\n{"a":2}', '{"a":1}'), 'may it?\n\n{"a":2}');
  assert.equal(without("may it?\n\nno", ""), "may it?\n\nno");
  assert.equal(pretty("no json"), "no json");
});

test("arguments that only the message shows can be changed too, unless they are cut", () => {
  assert.equal(shown('may it?\n\n{\n  "a": 1\n}'), '{\n  "a": 1\n}');
  assert.equal(shown('may it?\n\n{"a": 1, …'), "");
  assert.equal(shown("may it?"), "");
});
