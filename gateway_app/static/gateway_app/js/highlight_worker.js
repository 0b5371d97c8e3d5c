// Colours code beside the page: {id, code, grammar} in, {id, loaded, runs} out. Not loaded: a grammar
// could not be fetched. Runs are null for code that cannot be coloured.

import highlighter from "../vendor/highlight/core.js";
import { codeRuns } from "./code_runs.js";
import { loadGrammar } from "./languages.js";

self.addEventListener("message", async ({ data: { id, code, grammar } }) => {
  let definitions;
  try {
    definitions = await loadGrammar(grammar);
  } catch {
    self.postMessage({ id, loaded: false, runs: null });
    return;
  }
  for (const [name, definition] of definitions) {
    if (!highlighter.getLanguage(name)) highlighter.registerLanguage(name, definition);
  }
  self.postMessage({ id, loaded: true, runs: runsOf(code, grammar) });
});

function runsOf(code, language) {
  try {
    return codeRuns(highlighter.highlight(code, { language, ignoreIllegals: true })._emitter.rootNode);
  } catch {
    return null; // A grammar's own fault: the code stays plain, which is readable.
  }
}
