import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange, fits, GOING_ON, merge } from "../src/calls/merge";
import { nice, percent, sums, timeline } from "../src/calls/scale";
import type { CallReport } from "../src/types";

function call(id: string, second: number, more: Partial<CallReport> = {}): CallReport {
  return { id, time: new Date(second * 1000).toISOString(), caller: "client:owner", endpoint: "mcp", server: "git", method: "tools/call", name: "log", bytes_in: 2, steps: 0, ...more };
}
const ids = (calls: CallReport[]) => calls.map((one) => one.id).join(" ");
const ok = { outcome: "ok", ok: true };

test("calls of both sources stand once, newest first", () => {
  assert.equal(ids(merge([call("b", 2, ok), call("a", 1, ok)], [call("c", 3), call("b", 2, ok)])), "c b a");
});

test("of two tellings the one that is further is taken, whoever told it", () => {
  assert.equal(merge([call("a", 1, ok)], [call("a", 1, { steps: 3 })])[0]!.outcome, "ok");
  assert.equal(merge([call("a", 1)], [call("a", 1, ok)])[0]!.outcome, "ok");
  assert.equal(merge([call("a", 1, { steps: 1 })], [call("a", 1, { steps: 4 })])[0]!.steps, 4);
});

test("calls of the same moment have a fixed order", () => {
  assert.equal(ids(merge([call("a", 1), call("b", 1)], [])), ids(merge([call("b", 1), call("a", 1)], [])));
});

test("calls are looked for as the gateway does", () => {
  const none = { caller: "", server: "", name: "", outcome: "" };
  assert.ok(fits(call("a", 1), none));
  assert.ok(!fits(call("a", 1), { ...none, server: "gi" }));
  assert.ok(fits(call("a", 1), { ...none, name: "LO" }));
  assert.ok(fits(call("a", 1), { ...none, caller: "owner" }) && fits(call("a", 1), { ...none, caller: "client:owner" }));
  assert.ok(!fits(call("a", 1), { ...none, caller: "own" }));
  assert.ok(fits(call("a", 1), { ...none, outcome: GOING_ON }));
  assert.ok(!fits(call("a", 1, ok), { ...none, outcome: GOING_ON }));
});

test("calls that go on stand first", () => {
  const { on, ended, fresh } = arrange([call("c", 3, ok), call("b", 2), call("a", 1, ok)], undefined);
  assert.deepEqual([ids(on), ids(ended), fresh], ["b", "c a", 0]);
});

test("while held no row moves: what ended stays above, what is new is counted, what is older comes in below", () => {
  const held = { on: ["b"], ended: ["a"] };
  const { on, ended, fresh } = arrange([call("d", 4), call("c", 3, ok), call("b", 2, ok), call("a", 1, ok), call("z", 0, ok)], held);
  assert.deepEqual([ids(on), ids(ended), fresh], ["b", "a z", 2]);
  assert.equal(on[0]!.outcome, "ok");
});

test("the top of an axis is the next round number", () => {
  assert.deepEqual([0, 0.3, 1, 3, 17, 50, 51, 180_000].map(nice), [1, 0.5, 1, 5, 20, 50, 100, 200_000]);
});

test("a small share is not called nothing", () => {
  assert.deepEqual([percent(0, 5), percent(1, 1_000_000), percent(3, 100), percent(1, 3), percent(1, 0)], ["0 %", "< 0.1 %", "3.0 %", "33 %", "0 %"]);
});

test("a call's time is parted into queue, server and asking, to scale", () => {
  const line = timeline([{ at_us: 0, event: "queued" }, { at_us: 100, event: "sent" }, { at_us: 400, event: "question" }, { at_us: 900, event: "answer" }, { at_us: 1000, event: "end" }], 1000, 0);
  assert.equal(line.whole, 1000);
  assert.deepEqual(line.spans, [
    { what: "queued", from: 0, to: 0.1 },
    { what: "at the server", from: 0.1, to: 0.4 },
    { what: "asking", from: 0.4, to: 0.9 },
    { what: "at the server", from: 0.9, to: 1 },
  ]);
  assert.deepEqual(line.marks.map((mark) => mark.at), [0, 0.1, 0.4, 0.9, 1]);
  assert.deepEqual(sums(line.spans).map(([what, part]) => `${what} ${part.toFixed(1)}`), ["queued 0.1", "at the server 0.4", "asking 0.5"]);
});

test("a call that goes on is drawn up to now, and one that was never sent was queued all the time", () => {
  assert.deepEqual(timeline([{ at_us: 0, event: "queued" }, { at_us: 50, event: "sent" }], undefined, 200).spans.at(-1), { what: "at the server", from: 0.25, to: 1 });
  assert.deepEqual(timeline([{ at_us: 0, event: "queued" }, { at_us: 80, event: "end" }], 80, 0).spans, [{ what: "queued", from: 0, to: 1 }]);
});

test("a person may be asked before a call is sent, and an answer may never come", () => {
  const asked = timeline([{ at_us: 0, event: "queued" }, { at_us: 100, event: "question" }, { at_us: 700, event: "answer" }, { at_us: 800, event: "sent" }, { at_us: 1000, event: "end" }], 1000, 0);
  assert.deepEqual(asked.spans.map((span) => `${span.what} ${span.from}-${span.to}`), ["queued 0-0.1", "asking 0.1-0.7", "queued 0.7-0.8", "at the server 0.8-1"]);
  const waits = timeline([{ at_us: 0, event: "queued" }, { at_us: 100, event: "question" }], undefined, 400);
  assert.deepEqual(waits.spans.map((span) => `${span.what} ${span.from}-${span.to}`), ["queued 0-0.25", "asking 0.25-1"]);
});
