import assert from "node:assert/strict";
import { test } from "node:test";
import { place } from "../src/chat/place";
import type { PendingRequest } from "../src/types";

const request = (id: string, call?: string): PendingRequest => ({ id, call, kind: "server", since: "", caller: "client:owner", message: "Who are you?" });
const ids = (list: PendingRequest[]) => list.map((one) => one.id);
const none = new Set<string>();

test("a request waits for its call, and stands with it", () => {
  const asked = [request("q1", "call1"), request("q2")];
  const early = place(asked, none, none, none);
  assert.deepEqual([ids(early.early), ids(early.loose)], [["q1"], ["q2"]]);
  const later = place(asked, new Set(["call1"]), new Set(["q2"]), none);
  assert.deepEqual([ids(later.within), ids(later.loose)], [["q1"], ["q2"]]);
});

test("a request whose call does not come is shown, and does not move when it comes after all", () => {
  const asked = [request("q1", "call1")];
  const shown = place(asked, none, none, new Set(["q1"]));
  assert.deepEqual(ids(shown.loose), ["q1"]);
  const later = place(asked, new Set(["call1"]), new Set(ids(shown.loose)), new Set(["q1"]));
  assert.deepEqual([ids(later.loose), ids(later.within)], [["q1"], []]);
});

test("a request that stands with its call stays there, however long it waits", () => {
  const { within } = place([request("q1", "call1")], new Set(["call1"]), none, new Set(["q1"]));
  assert.deepEqual(ids(within), ["q1"]);
});
