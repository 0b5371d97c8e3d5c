import assert from "node:assert/strict";
import { test } from "node:test";

import { formatCount, formatDuration } from "../../gateway_app/static/gateway_app/js/format.js";
import {
  gettext,
  interpolate,
  load,
  ngettext,
  pgettext,
} from "../../gateway_app/static/gateway_app/js/i18n.js";

test("it says in English what the catalogue lacks", () => {
  assert.equal(gettext("Not there"), "Not there");
  assert.deepEqual([0, 1, 2].map((count) => ngettext("word", "words", count)), [
    "words", "word", "words",
  ]);
});

test("it puts values in by name and by place, once, and leaves a percent sign", () => {
  assert.equal(interpolate("%s of %s", [1, "%s"]), "1 of %s");
  assert.equal(interpolate("%(a)s, %(b)s, %(a)s", { a: "x", b: 0 }), "x, 0, x");
  assert.equal(interpolate("%s%% full", [80]), "80% full");
});

test("it takes words, contexts, plurals and numbers of the page's language", () => {
  load({
    language: "de",
    messages: { Open: "Öffnen", "state\u0004Open": "Offen", word: ["Wort", "Wörter"] },
  });
  assert.equal(gettext("Open"), "Öffnen");
  assert.equal(pgettext("state", "Open"), "Offen");
  assert.deepEqual([0, 1, 2].map((count) => ngettext("word", "words", count)), [
    "Wörter", "Wort", "Wörter",
  ]);
  assert.deepEqual([formatCount(8123), formatDuration(3200)], ["8,1k", "3,2 s"]);
});

test("it knows languages with more than two plural forms", () => {
  load({ language: "pl", messages: { file: ["plik", "pliki", "plików"] } });
  assert.deepEqual([1, 3, 5, 22, 112].map((count) => ngettext("file", "files", count)), [
    "plik", "pliki", "plików", "pliki", "plików",
  ]);
  load({ language: "en", messages: {} });
});
