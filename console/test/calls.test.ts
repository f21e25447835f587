// A call in other words, and addresses from templates.
import { test } from "node:test";
import assert from "node:assert/strict";
import { asCommand, asCurl, asRust, shellWord } from "../src/call/snippets";
import type { ToolDetail } from "../src/types";
import { expandTemplate, templateVariables } from "../src/uri-template";

const tool: ToolDetail = {
  id: "files.read", name: "read", server: "files", tokens: 1, annotations: {}, pin: "agreed", hidden: false, changed: false, server_name: "read", steps: [],
  input_schema: { type: "object", properties: { path: { type: "string" }, region: { type: "string", "x-mcp-header": "Region" } } },
};

test("a shell reads back what was quoted", () => {
  assert.deepEqual(["plain", "two words", "it's", "$(rm)", ""].map(shellWord), ["plain", "'two words'", "'it'\\''s'", "'$(rm)'", "''"]);
});

test("a command says texts plainly and the rest as JSON", () => {
  assert.equal(asCommand(tool, { path: "a b", limit: 5, deep: { x: "it's" } }), `consort call files.read 'path=a b' limit:=5 'deep:={"x":"it'\\''s"}'`);
  assert.equal(asCommand(tool, {}, { profile: "small" }), "consort call files.read --profile small");
  assert.equal(asCommand(tool, {}, { exposure: "search" }), "consort call files.read --exposure search");
  assert.equal(asCommand(tool, { "odd name": 1 }), `consort call files.read --args '{"odd name":1}'`);
});

test("curl goes to the server's own address, unless a transform changed the tool", () => {
  const own = asCurl(tool, { path: "é", region: "naïve" }, "http://127.0.0.1:8808/mcp", true);
  assert.ok(own.startsWith("curl -sS http://127.0.0.1:8808/servers/files/mcp \\\n  -H 'Authorization: Bearer TOKEN'"));
  assert.ok(own.includes("-H 'Mcp-Name: read'") && own.includes("-H 'Mcp-Param-Region: =?base64?bmHDr3Zl?='"));
  const seen = asCurl({ ...tool, name: "mcp_files" }, {}, "http://127.0.0.1:8808/mcp", false, { profile: "small" });
  assert.match(seen, /^curl -sS http:\/\/127\.0\.0\.1:8808\/mcp\/small /);
  const exposed = asCurl(tool, {}, "http://127.0.0.1:8808/mcp", false, { exposure: "per-server" });
  assert.match(exposed, /^curl -sSN http:\/\/127\.0\.0\.1:8808\/api\/calls /);
  const shaped = asCurl({ ...tool, name: "say", changed: true }, {}, "http://127.0.0.1:8808/mcp", false);
  assert.ok(shaped.startsWith("curl -sS http://127.0.0.1:8808/mcp \\\n  -H 'Content-Type") && shaped.includes("Mcp-Name: say"));
});

test("Rust gets a raw string that holds the arguments", () => {
  assert.ok(asRust(tool, { path: 'a"#b' }).includes('r#"{\n') === false);
  assert.ok(asRust({ ...tool, id: 'x"\u202e' }, {}).includes('"x\\u{22}\\u{202e}"'));
});

test("templates become addresses", () => {
  assert.deepEqual(templateVariables("db://{table}/{id}{?limit,page*}"), [{ name: "table", required: true }, { name: "id", required: true }, { name: "limit", required: false }, { name: "page", required: false }]);
  assert.equal(expandTemplate("db://{table}/{id}{?limit,page}", { table: "a b", id: "1/2", page: "3" }), "db://a%20b/1%2F2?page=3");
  assert.equal(expandTemplate("file:///{+path}{#part}", { path: "a/b c", part: "x" }), "file:///a/b%20c#x");
  assert.equal(expandTemplate("x:{/a,b}{.c}{;d}{e:2}", { a: "1", b: "2", c: "z", d: "4", e: "abc" }), "x:/1/2.z;d=4ab");
});
