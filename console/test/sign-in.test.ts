import assert from "node:assert/strict";
import { test } from "node:test";
import { ownPath, proofIn } from "../src/sign-in";

test("a proof is what stands behind its mark", () => {
  assert.equal(proofIn("#sign-in=17.ab"), "17.ab");
  for (const hash of ["", "#", "#sign-in", "#sign-in=", "#main", "?sign-in=1"]) assert.equal(proofIn(hash), undefined, hash);
});

test("a link of the gateway leads nowhere else", () => {
  for (const path of ["/me", "/base/oauth/sign-in?to=console&fresh=1"]) assert.equal(ownPath(path), path);
  for (const other of [undefined, "", "me", "//evil.invalid", "/\\evil.invalid", "https://evil.invalid", "javascript:alert(1)"]) assert.equal(ownPath(other), undefined, other);
});
