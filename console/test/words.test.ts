// What is written of numbers and hostile texts, and how event streams are read.
import { test } from "node:test";
import assert from "node:assert/strict";
import { events } from "../src/api";
import { ago, bytes, duration, pieces, plain } from "../src/words";

test("characters that hide something are written out", () => {
  assert.deepEqual(pieces("na\u202eme"), [{ text: "na", hidden: false }, { text: "\\u202e", hidden: true }, { text: "me", hidden: false }]);
  assert.equal(plain("a\u200bb\u0000c\u{e0041}d\ud800"), "a\\u200bb\\u0000c\\u{e0041}d\\ud800");
  assert.equal(plain("line\n\ttab\r\nnext 👩‍👩‍👧 ünï 世界"), "line\n\ttab\nnext 👩‍👩‍👧 ünï 世界");
});

test("sizes, durations and times are short", () => {
  assert.deepEqual([12, 1500, 65_536, 2_500_000].map(bytes), ["12 B", "1.5 kB", "66 kB", "2.5 MB"]);
  assert.deepEqual([500, 1500, 250_000, 1_500_000, 75_000_000].map(duration), ["500 µs", "1.5 ms", "250 ms", "1.5 s", "1 min 15 s"]);
  const now = Date.parse("2026-01-01T00:01:00Z");
  assert.deepEqual(["2026-01-01T00:01:00Z", "2026-01-01T00:00:30Z", "2026-01-01T00:05:00Z"].map((time) => ago(time, now)), ["now", "30 s ago", "in 4 min"]);
});

test("an event stream is read in pieces of any size", () => {
  const whole = ': hello\nevent: a\ndata: {"x":\ndata: 1}\n\nevent: b\r\ndata:[2]\r\n\r\n: ping\n\ndata: 3\n\n';
  for (const size of [1, 2, 7, 1000]) {
    const heard: unknown[] = [];
    const feed = events((name, data) => heard.push([name, data]));
    for (let at = 0; at < whole.length; at += size) feed(whole.slice(at, at + size));
    assert.deepEqual(heard, [["a", { x: 1 }], ["b", [2]], ["message", 3]], `in pieces of ${size}`);
  }
});
