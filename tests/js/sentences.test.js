import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "../../gateway_app/static/gateway_app/js/i18n.js";
import { CommandError } from "../../gateway_app/static/gateway_app/js/protocol.js";
import { told } from "../../gateway_app/static/gateway_app/js/sentences.js";

const SILENT = "%(who)s did not answer for %(seconds)s s.";
const KEPT = "Your message is kept.";
const MADE = [
  { text: SILENT, values: { who: [{ text: "The local model", values: {} }], seconds: 1200.5 } },
  { text: KEPT, values: {} },
];

function inGerman(work) {
  load({
    language: "de",
    messages: {
      [SILENT]: "%(who)s antwortete %(seconds)s s lang nicht.",
      [KEPT]: "Ihre Nachricht bleibt erhalten.",
      "The local model": "Das lokale Modell",
    },
  });
  work();
  load({ language: "en", messages: {} });
}

test("it says a server's sentence in the page's language", () => {
  const shown = "Das lokale Modell antwortete 1.200,5 s lang nicht. Ihre Nachricht bleibt erhalten.";
  inGerman(() => {
    assert.equal(told("English", MADE), shown);
    assert.equal(new CommandError({ code: "busy", message: "English", sentences: MADE }).message, shown);
  });
  assert.equal(told("English", MADE), "English");
});

test("it leaves a message as it came where a part of it is not known", () => {
  const odd = [
    undefined,
    null,
    "text",
    [],
    [{ text: KEPT }],
    [{ text: "toString", values: {} }],
    [...MADE, { text: "Of a later version.", values: {} }],
    [{ text: KEPT, values: { who: { deep: true } } }],
  ];
  inGerman(() => {
    for (const sentences of odd) assert.equal(told("As it came", sentences), "As it came");
  });
});
