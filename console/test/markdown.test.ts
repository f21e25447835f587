// Markdown from servers: what is laid out, and what must never be.
import { test } from "node:test";
import assert from "node:assert/strict";
import { looksLikeMarkdown, parseMarkdown, safeLink } from "../src/content/parse-markdown";

test("blocks are told apart", () => {
  assert.deepEqual(parseMarkdown("# A\n\ntext\nmore\n\n```js\nlet a;\n```\n---\n> q"), [
    { kind: "heading", level: 1, parts: ["A"] },
    { kind: "paragraph", parts: ["text\nmore"] },
    { kind: "code", language: "js", text: "let a;" },
    { kind: "rule" },
    { kind: "quote", nodes: [{ kind: "paragraph", parts: ["q"] }] },
  ]);
});

test("lists nest and count", () => {
  assert.deepEqual(parseMarkdown("- a\n  - b\n- c\n\n3. x\n4. y"), [
    { kind: "list", ordered: false, start: 1, items: [[{ kind: "paragraph", parts: ["a"] }, { kind: "list", ordered: false, start: 1, items: [[{ kind: "paragraph", parts: ["b"] }]] }], [{ kind: "paragraph", parts: ["c"] }]] },
    { kind: "list", ordered: true, start: 3, items: [[{ kind: "paragraph", parts: ["x"] }], [{ kind: "paragraph", parts: ["y"] }]] },
  ]);
});

test("a table has a head and rows", () => {
  assert.deepEqual(parseMarkdown("| a | b |\n|---|:-:|\n| 1 | `x` |"), [{ kind: "table", head: [["a"], ["b"]], rows: [[["1"], [{ kind: "code", text: "x" }]]] }]);
});

test("emphasis, code and links stand in a line; names with underscores stay", () => {
  assert.deepEqual(parseMarkdown("**b** *i* `c` snake_case_name [t](https://x.y) \\*no\\*"), [{
    kind: "paragraph",
    parts: [{ kind: "strong", parts: ["b"] }, " ", { kind: "em", parts: ["i"] }, " ", { kind: "code", text: "c" }, " snake_case_name ", { kind: "link", parts: ["t"], href: "https://x.y" }, " *no*"],
  }]);
});

test("HTML is text and an image is not fetched", () => {
  assert.deepEqual(parseMarkdown("<script>alert(1)</script> ![p](https://evil/x.png)"), [{ kind: "paragraph", parts: ["<script>alert(1)</script> ", { kind: "image", alt: "p", href: "https://evil/x.png" }] }]);
});

test("only http and https are followed", () => {
  for (const href of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//evil", "x", " javascript:alert(1)", "java\nscript:alert(1)"]) assert.equal(safeLink(href), undefined, href);
  assert.equal(safeLink("https://example.com/a"), "https://example.com/a");
});

test("a text made to take long does not", () => {
  const start = Date.now();
  for (const piece of ["[", "*a ", "**", "`", "> ", "- ", "_a", "![", "[a](", "|-|\n", "<http", "~~"]) parseMarkdown(piece.repeat(20_000));
  parseMarkdown(Array.from({ length: 3000 }, (_, at) => `${" ".repeat(at % 40)}- x`).join("\n"));
  assert.ok(Date.now() - start < 5000, `${Date.now() - start} ms`);
});

test("plain words are left alone", () => {
  assert.equal(looksLikeMarkdown("2 * 3 = 6 and a_b"), false);
  assert.equal(looksLikeMarkdown("# Title"), true);
});
