// The running turn as a fold over its AG-UI events: old run + event = new run, nothing else.
//
// A run is {turnId, runId, steps}; a step is one assistant message in the making:
// {key, messageId, reasoning, text, calls: [{id, name, arguments, result}]}, a call's result being
// {content, error, durationMs} as in its row. A step's key stays the same
// when the message id becomes known and when the finished message takes its place.

export function newRun(turnId, runId = null) {
  return { turnId, runId, steps: [], startedAt: null };
}

const REDUCERS = {
  RUN_STARTED: (run, event) => ({
    ...newRun(run.turnId, event.runId),
    startedAt: event.timestamp ?? null,
  }),
  TEXT_MESSAGE_START: (run, event) => openStep(run, event.messageId),
  TEXT_MESSAGE_CONTENT: (run, event) =>
    changeStep(run, event.messageId, (step) => ({ ...step, text: step.text + (event.delta ?? "") })),
  REASONING_START: (run, event) => openReasoning(run, event.messageId),
  REASONING_MESSAGE_START: (run, event) => openReasoning(run, event.messageId),
  REASONING_MESSAGE_CONTENT: (run, event) =>
    changeLast(openReasoning(run, event.messageId), (step) => ({
      ...step,
      reasoning: step.reasoning + (event.delta ?? ""),
    })),
  TOOL_CALL_START: (run, event) =>
    changeLast(openStep(run, event.parentMessageId ?? null), (step) => ({
      ...step,
      calls: [...step.calls, { id: event.toolCallId, name: event.toolCallName, arguments: "" }],
    })),
  TOOL_CALL_ARGS: (run, event) =>
    changeCall(run, event.toolCallId, (call) => ({
      ...call,
      arguments: call.arguments + (event.delta ?? ""),
    })),
  TOOL_CALL_RESULT: (run, event) =>
    changeCall(run, event.toolCallId, (call) => ({
      ...call,
      result: { content: event.content, ...event.metadata?.hermes },
    })),
  CUSTOM: (run, event) => (event.name === "hermes.message" ? closeStep(run, event.value) : run),
};

/** The run after the event; the same object if the event says nothing about it. */
export function applyRunEvent(run, event) {
  const reduce = REDUCERS[event.type];
  return reduce === undefined ? run : reduce(run, event);
}

/** The key of the step that becomes `message`; null if there is none. */
export function keyOfStep(run, message) {
  return stepOf(run, message)?.key ?? null;
}

/** True once something of the answer can be read. */
export function hasText(run) {
  return run.steps.some((step) => step.text || step.reasoning || step.calls.length > 0);
}

/** A row of the answer is written: its step is no longer in the making. */
function closeStep(run, message) {
  if (message.kind !== "assistant") return run;
  if (message.state === "superseded") return { ...run, steps: [] };
  const closed = stepOf(run, message);
  return { ...run, steps: run.steps.filter((step) => step !== closed) };
}

/** Its own step, or the one that knows of no message yet: reasoning alone has no text to name it. */
function stepOf(run, message) {
  const own = run.steps.find((step) => step.messageId === message.id);
  return own ?? run.steps.find((step) => step.messageId === null);
}

function blankStep(key, messageId) {
  return { key, messageId, reasoning: "", text: "", calls: [] };
}

function openStep(run, messageId) {
  if (run.steps.some((step) => step.messageId === messageId && messageId !== null)) return run;
  const last = run.steps.at(-1);
  if (last !== undefined && last.messageId === null) {
    return changeLast(run, (step) => ({ ...step, messageId }));
  }
  if (messageId === null && last !== undefined) return run;
  return { ...run, steps: [...run.steps, blankStep(`m:${messageId ?? run.runId}`, messageId)] };
}

/** Reasoning comes before its message, under an id of its own: it opens a step without a message. */
function openReasoning(run, reasoningId) {
  const last = run.steps.at(-1);
  if (last !== undefined && (last.messageId === null || last.messageId === reasoningId)) return run;
  return { ...run, steps: [...run.steps, blankStep(`r:${reasoningId}`, null)] };
}

function changeStep(run, messageId, change) {
  const steps = run.steps.map((step) => (step.messageId === messageId ? change(step) : step));
  return { ...run, steps };
}

function changeLast(run, change) {
  return { ...run, steps: [...run.steps.slice(0, -1), change(run.steps.at(-1))] };
}

function changeCall(run, callId, change) {
  const steps = run.steps.map((step) => ({
    ...step,
    calls: step.calls.map((call) => (call.id === callId ? change(call) : call)),
  }));
  return { ...run, steps };
}
