// The page's end of the worker that colours code. It is started by the first code that wants it.

import { trustedWorker } from "./trusted.js";

let worker = null;
let last = 0;
const waiting = new Map();

/** The runs of the code (see code_runs.js); null if it cannot be coloured. */
export function runsOf(code, grammar) {
  worker ??= start();
  last += 1;
  worker.postMessage({ id: last, code, grammar });
  return new Promise((resolve) => waiting.set(last, resolve));
}

function start() {
  const started = new Worker(trustedWorker(), { type: "module" });
  started.addEventListener("message", ({ data: { id, runs } }) => {
    waiting.get(id)?.(runs);
    waiting.delete(id);
  });
  started.addEventListener("error", () => {
    for (const resolve of waiting.values()) resolve(null);
    waiting.clear();
  });
  return started;
}
