// Colours code beside the page: {id, code, grammar} in, {id, runs} out; runs is null if it cannot.

import highlighter from "../vendor/highlight/core.js";
import { codeRuns } from "./code_runs.js";
import { loadGrammar } from "./languages.js";

async function runsOf(code, grammar) {
  for (const [name, definition] of await loadGrammar(grammar)) {
    if (!highlighter.getLanguage(name)) highlighter.registerLanguage(name, definition);
  }
  const result = highlighter.highlight(code, { language: grammar, ignoreIllegals: true });
  return codeRuns(result._emitter.rootNode);
}

self.addEventListener("message", async ({ data: { id, code, grammar } }) => {
  let runs = null;
  try {
    runs = await runsOf(code, grammar);
  } catch {
    // Without its grammar the code stays as it is, which is readable.
  }
  self.postMessage({ id, runs });
});
