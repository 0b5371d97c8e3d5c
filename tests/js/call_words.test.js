import assert from "node:assert/strict";
import { test } from "node:test";

import { callState, callWords } from "../../gateway_app/static/gateway_app/js/call_words.js";

test("it tells how a call stands", () => {
  assert.equal(callState(undefined), "running");
  assert.equal(callState({ content: "seen" }), "done");
  assert.equal(callState({ content: "no", error: true }), "failed");
  assert.equal(callState({ content: "?", error: "unknown" }), "unknown");
});

test("it lets a short result stand for itself, and tells the time of others", () => {
  assert.equal(callWords("done", "Nothing is left.", 300), "Nothing is left.");
  assert.equal(callWords("done", "two\nlines", 300), "300 ms");
  assert.equal(callWords("done", "x".repeat(41), 1500), "1.5 s");
  assert.equal(callWords("done", "x".repeat(41), undefined), "Done");
});

test("it says of a failed call the first sentence of why", () => {
  assert.equal(callWords("failed", "The ground is 1.5 m too low. Try again."), "The ground is 1.5 m too low.");
  assert.equal(callWords("failed", "no\nTraceback"), "no");
  assert.equal(callWords("failed", ""), "Failed");
  assert.equal(callWords("unknown", "The outcome"), "It may have run. It was not run again.");
});
