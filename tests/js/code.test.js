import assert from "node:assert/strict";
import { test } from "node:test";

import { codeRuns } from "../../gateway_app/static/gateway_app/js/code_runs.js";
import { grammarOf, loadGrammar, nameOf } from "../../gateway_app/static/gateway_app/js/languages.js";
import highlighter from "../../gateway_app/static/gateway_app/vendor/highlight/core.js";

async function runsOf(code, language) {
  const grammar = grammarOf(language);
  for (const [name, definition] of await loadGrammar(grammar)) highlighter.registerLanguage(name, definition);
  return codeRuns(highlighter.highlight(code, { language: grammar, ignoreIllegals: true })._emitter.rootNode);
}

test("it gives every run of a text its kind, and loses nothing", async () => {
  const code = 'def f(x: int):\n    """Why."""\n    return f"{x} < 1" if x else 0.5  # <b>\n';
  const runs = await runsOf(code, "py");
  assert.equal(runs.map(([, text]) => text).join(""), code);
  const found = (kind) => runs.filter(([own]) => own === kind).map(([, text]) => text);
  assert.deepEqual(found("keyword"), ["def", "return", "if", "else"]);
  assert.deepEqual(found("function"), ["f"]);
  assert.deepEqual(found("number"), ["0.5"]);
  assert.deepEqual(found("comment"), ["# <b>"]);
  assert.deepEqual(found("string"), ['"""Why."""', 'f"', ' < 1"']);
});

test("it colours what lies inside another language", async () => {
  const runs = await runsOf("<style>a { color: red }</style><script>let x = 1;</script>", "html");
  assert.ok(runs.some(([kind, text]) => kind === "keyword" && text === "let"));
  assert.equal(nameOf("html"), "HTML");
});

test("it has a grammar for every name it knows, and none for others", async () => {
  for (const name of ["py", "JS", "c++", "sh", "yml", "dockerfile", "diff", "toml", "kt", "php", "console"]) {
    assert.ok((await loadGrammar(grammarOf(name))).length > 0, name);
  }
  for (const name of ["", "nosuch", "constructor", "__proto__", "mermaid"]) assert.equal(grammarOf(name), null);
  assert.equal(nameOf("nosuch"), "nosuch");
});
