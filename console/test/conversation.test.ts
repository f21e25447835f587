import assert from "node:assert/strict";
import { test } from "node:test";
import { canGoOn, fromDetail, type ConversationItem, NOTHING, settle, step, type ConversationView } from "../src/chat/conversation";
import type { ConversationDetail, MessageRow, MessagePart } from "../src/types";

const words = (text: string): MessagePart => ({ type: "text", text });
const user: MessageRow = { role: "user", parts: [words("hello")] };
const calling: MessageRow = { role: "assistant", parts: [words("I look"), { type: "call", id: "1", name: "git_log", arguments: { n: 1 } }] };
const result: MessageRow = { role: "tool", parts: [{ type: "result", call: "1", is_error: false, parts: [words("a commit")] }] };
const answer: MessageRow = { role: "assistant", parts: [words("done")] };
const report = { status: "completed", text: "done", turns: 2, calls: 1, failed: 0, input: 10, output: 5, duration_ms: 100 };

function detail(entries: MessageRow[], more: Partial<ConversationDetail> = {}): ConversationDetail {
  return { id: "c", title: "t", created: "", last: "", messages: entries.length, input: 0, output: 0, state: "completed", running: false, pending: [], entries, ...more };
}
function play(talk: ConversationView, events: [string, unknown][]): ConversationView {
  return events.reduce((talk, [name, data]) => step(talk, name, data), talk);
}
const RUN: [string, unknown][] = [
  ["started", { model: "m", tools: 3 }],
  ["turn", { turn: 1 }],
  ["delta", { type: "thinking", text: "hm" }],
  ["delta", { type: "text", text: "I " }],
  ["delta", { type: "text", text: "look" }],
  ["message", { message: calling }],
  ["call", { call: "1", name: "git_log", tool: "git.log", arguments: { n: 2 } }],
  ["progress", { call: "1", progress: 1, total: 2 }],
  ["log", { call: "1", level: "info", data: "at it" }],
  ["result", { call: "1", parts: [words("a commit")], is_error: false, duration_ms: 30 }],
  ["note", { text: "shortened" }],
  ["turn", { turn: 2 }],
  ["message", { message: answer }],
  ["end", report],
];
const message = (item: ConversationItem | undefined) => {
  assert.equal(item?.kind, "message");
  return item as Extract<ConversationItem, { kind: "message" }>;
};

test("results stand with their calls, and a fork never parts the two", () => {
  const talk = fromDetail(detail([user, calling, result, answer]));
  assert.deepEqual(talk.items.map((item) => message(item).at), [1, 3, 4]);
  assert.deepEqual(message(talk.items[1]).calls, [{ id: "1", name: "git_log", arguments: { n: 1 }, state: "done", logs: [], result: [words("a commit")] }]);
});

test("a call without a result has no answer", () => {
  assert.equal(message(fromDetail(detail([user, calling])).items[1]).calls[0]!.state, "no result");
});

test("text and thinking stream apart and give way to what was said", () => {
  const streaming = play(NOTHING, RUN.slice(0, 5));
  assert.deepEqual(streaming.streaming, { thinking: "hm", text: "I look", refusal: "" });
  assert.equal(step(streaming, "message", { message: calling }).streaming, undefined);
});

test("a call unfolds: sent arguments, progress, log lines, result", () => {
  const start = fromDetail(detail([user], { running: true }));
  const going = message(play(start, RUN.slice(0, 9)).items[1]).calls[0]!;
  assert.deepEqual(going, { id: "1", name: "git_log", tool: "git.log", arguments: { n: 2 }, state: "running", progress: { progress: 1, total: 2 }, logs: [{ level: "info", data: "at it" }] });
  const done = message(play(start, RUN.slice(0, 10)).items[1]).calls[0]!;
  assert.deepEqual([done.state, done.duration_ms, done.progress, done.result], ["done", 30, undefined, [words("a commit")]]);
});

test("an id that an earlier turn used too means the latest call", () => {
  const talk = play(fromDetail(detail([user, calling, result], { running: true })), [["message", { message: calling }], ["result", { call: "1", parts: [words("other")], is_error: true, duration_ms: 1 }]]);
  assert.deepEqual(talk.items.slice(1).map((item) => message(item).calls[0]!.state), ["done", "failed"]);
});

test("a second attempt begins anew", () => {
  const talk = play(NOTHING, [...RUN.slice(0, 5), ["retry", { error: "busy", after_ms: 10 }], ["delta", { type: "text", text: "I" }]]);
  assert.deepEqual(talk.streaming, { thinking: "", text: "I", refusal: "" });
  assert.deepEqual(talk.items, [{ kind: "retry", error: "busy", after_ms: 10 }]);
});

test("what a run leaves behind gets no answer", () => {
  const talk = play(NOTHING, [...RUN.slice(0, 8), ["end", { ...report, status: "cancelled" }]]);
  assert.deepEqual([talk.running, talk.streaming, message(talk.items[0]).calls[0]!.state], [false, undefined, "no result"]);
});

test("after a run the kept messages tell where to fork, and what the events told stays", () => {
  const talk = play(fromDetail(detail([user], { running: true })), RUN);
  const settled = settle(talk, detail([user, calling, result, answer], { report }));
  assert.deepEqual(settled.items.map((item) => (item.kind === "message" ? item.at : item.kind)), [1, 3, "note", 4]);
  assert.equal(message(settled.items[1]).calls[0]!.duration_ms, 30);
});

test("the order of keys does not matter", () => {
  const turned: MessageRow = { parts: [words("I look"), { arguments: { n: 1 }, name: "git_log", id: "1", type: "call" }], role: "assistant" };
  const talk = play(fromDetail(detail([user], { running: true })), RUN.map(([name, data]) => (name === "message" && (data as { message: MessageRow }).message === calling ? [name, { message: turned }] : [name, data])));
  assert.equal(message(settle(talk, detail([user, calling, result, answer])).items[1]).calls[0]!.duration_ms, 30);
});

test("what is kept is right where it says something else", () => {
  const talk = play(fromDetail(detail([user], { running: true })), RUN);
  assert.equal(settle(talk, detail([user])).items.length, 1);
});

test("what came meanwhile is added, and what was told before stays", () => {
  const talk = play(fromDetail(detail([user], { running: true })), RUN);
  const settled = settle(talk, detail([user, calling, result, answer, user, answer]));
  assert.deepEqual(settled.items.map((item) => (item.kind === "message" ? item.at : item.kind)), [1, 3, "note", 4, 5, 6]);
  assert.equal(message(settled.items[1]).calls[0]!.duration_ms, 30);
});

test("what was just said is shown while the run that answers it has not kept it yet", () => {
  const talk = fromDetail(detail([user, answer]));
  const said: ConversationView = { ...talk, running: true, items: [...talk.items, { kind: "message", message: user, calls: [] }] };
  assert.equal(settle(said, detail([user, answer], { running: true })).items.length, 3);
  assert.equal(settle(said, detail([user, answer])).items.length, 2);
});

test("unknown events change nothing", () => {
  assert.equal(step(NOTHING, "idle", {}), NOTHING);
});

test("what was broken off can go on, what was completed cannot", () => {
  assert.equal(canGoOn(fromDetail(detail([user, calling, result])), "error"), true);
  assert.equal(canGoOn(fromDetail(detail([user])), "new"), true);
  assert.equal(canGoOn(fromDetail(detail([user, answer])), "completed"), false);
  assert.equal(canGoOn(fromDetail(detail([user], { running: true })), "unfinished"), false);
  assert.equal(canGoOn(NOTHING, "new"), false);
});
