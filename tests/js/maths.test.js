import assert from "node:assert/strict";
import { test } from "node:test";

import { markdown } from "../../gateway_app/static/gateway_app/js/markdown.js";

const formulas = (text) =>
  [...markdown.render(text).matchAll(/class="maths (\w*)">([^<]*)</g)].map(([, kind, source]) => [kind, source]);

test("it finds formulas in a line and on display", () => {
  assert.deepEqual(formulas("a $x_1$ b \\(y\\) c $$z$$ d \\[w\\] e"), [
    ["", "$x_1$"],
    ["", "\\(y\\)"],
    ["display", "$$z$$"],
    ["display", "\\[w\\]"],
  ]);
  assert.deepEqual(formulas("$$\nx\n$$\n\n> \\[\n> y\n> \\]\n\n- $$z$$\n"), [
    ["display", "$$\nx\n$$"],
    ["display", "\\[\ny\n\\]"],
    ["display", "$$z$$"],
  ]);
});

test("it takes no price, no code and no unfinished formula for one", () => {
  const others = ["$5 and $10", "$5-$10", "US$5 (US$6)", "`$x$`", "```\n$x$\n```", "$ x $", "$x", "\\$x\\$", "$$", "$$\nx\n\ny\n$$", "\\(x", "$$$$", "    $$\n    x"];
  for (const text of others) assert.deepEqual(formulas(text), [], text);
});

test("it keeps a formula's Markdown and markup as text", () => {
  assert.deepEqual(formulas("$a_b*c*d_e$ and $<img src=x onerror=alert(1)>$"), [
    ["", "$a_b*c*d_e$"],
    ["", "$&lt;img src=x onerror=alert(1)&gt;$"],
  ]);
});
