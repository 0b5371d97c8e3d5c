// An answer, live or finished: reasoning folded, Markdown, tool calls, and how it ended.

import { GrowingText, clone, icon, make, setText } from "./dom.js";
import { clockTime } from "./format.js";
import { gettext } from "./i18n.js";
import { Prose } from "./prose.js";
import { CALL_STATES, assistantWords, thoughtWords } from "./thread_words.js";
import { finishWords } from "./words.js";

export class AnswerView {
  #parts;
  #prose = new Prose();
  #calls = new Map();
  #reasoning;

  constructor() {
    const { element, parts } = clone("t-answer");
    this.element = element;
    this.#parts = parts;
    this.#reasoning = new GrowingText(parts.reasoningText);
    parts.prose.replaceWith(this.#prose.element);
  }

  update(item) {
    const { heading, reasoning, reasoningWords, finish, finishText } = this.#parts;
    setText(heading, assistantWords(item.createdAt && clockTime(item.createdAt)));
    this.element.classList.toggle("live", item.live);
    reasoning.hidden = !item.reasoning;
    setText(reasoningWords, thoughtWords(item));
    this.#reasoning.update(item.reasoning);
    this.#prose.update(item.text, item.live);
    this.#prose.element.hidden = !item.text;
    this.#drawCalls(item);
    const words = finishWords(item.finish);
    finish.hidden = words === "";
    setText(finishText, words);
  }

  #drawCalls(item) {
    this.#parts.calls.hidden = item.calls.length === 0;
    for (const call of item.calls) {
      if (!this.#calls.has(call.id)) {
        const drawn = clone("t-call");
        this.#calls.set(call.id, drawn);
        this.#parts.calls.append(drawn.element);
      }
      drawCall(this.#calls.get(call.id).parts, call);
    }
  }
}

function drawCall(parts, call) {
  setText(parts.name, call.name);
  setText(parts.brief, call.arguments.slice(0, 80));
  setText(parts.arguments, call.arguments);
  const result = resultText(call.result);
  const state = stateOf(call.result);
  if (parts.state.dataset.state !== state) {
    parts.state.dataset.state = state;
    parts.state.replaceChildren(...stateNodes(CALL_STATES[state], result));
  }
  parts.result.hidden = result === "";
  setText(parts.result, result);
}

function stateOf(result) {
  if (result === undefined) return "running";
  if (result.error === "unknown") return "unknown";
  return result.error ? "failed" : "done";
}

/** A result of one short line stands for the word. */
function stateNodes(state, result) {
  if (state === undefined) return [make("span", "ring"), make("span", "only-heard", gettext("Running"))];
  const short = state === CALL_STATES.done && result && result.length <= 40 && !result.includes("\n");
  const word = make("bdi", "", short ? result : state.word);
  return [icon(state.icon, true), word];
}

function resultText(result) {
  if (result === undefined) return "";
  if (typeof result === "string") return result;
  if (typeof result.content === "string") return result.content;
  return JSON.stringify(result.content ?? result);
}
