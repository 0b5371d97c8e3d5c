// The page's end of the worker that colours code. It is started by the first code that wants it; one
// that could not be loaded is started again when the server can be reached.

import { trustedWorker } from "./trusted.js";

/** Code of more characters is coloured only when somebody asks. */
export const AT_ONCE = 50_000;

let worker = null;
let last = 0;
const waiting = new Map();

/** The runs of the code (see code_runs.js); null if it cannot be coloured. */
export function runsOf(code, grammar) {
  last += 1;
  const request = { id: last, code, grammar };
  const runs = new Promise((resolve) => waiting.set(request.id, { request, resolve }));
  if (worker === null) start();
  else worker.postMessage(request);
  return runs;
}

/** A worker that is asked for everything that waits. */
function start() {
  worker = new Worker(trustedWorker(), { type: "module" });
  worker.addEventListener("message", ({ data }) => (data.loaded ? take(data) : stop()));
  worker.addEventListener("error", stop);
  for (const { request } of waiting.values()) worker.postMessage(request);
}

function take({ id, runs }) {
  waiting.get(id)?.resolve(runs);
  waiting.delete(id);
}

function stop() {
  worker?.terminate();
  worker = null;
}

globalThis.addEventListener?.("reachable", () => worker === null && waiting.size > 0 && start());
