// An answer, live or finished: reasoning folded, Markdown, tool calls, and how it ended.

import { CALL_ICONS, callState, callWords } from "./call_words.js";
import { GrowingText, bdi, clone, icon, make, setText } from "./dom.js";
import { clockTime } from "./format.js";
import { gettext } from "./i18n.js";
import { Prose } from "./prose.js";
import { assistantWords, thoughtWords } from "./thread_words.js";
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
    const writing = item.live && item.calls.length === 0;
    this.element.classList.toggle("live", writing);
    reasoning.hidden = !item.reasoning;
    setText(reasoningWords, thoughtWords(item));
    this.#reasoning.update(item.reasoning);
    this.#prose.update(item.text, writing);
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
  setText(parts.brief, call.arguments === "{}" ? "" : call.arguments.slice(0, 80));
  setText(parts.arguments, call.arguments);
  const result = resultText(call.result);
  const state = callState(call.result);
  if (parts.state.dataset.state !== state) {
    parts.state.dataset.state = state;
    parts.state.replaceChildren(...stateNodes(state, call.result, result));
  }
  parts.result.hidden = result === "";
  setText(parts.result, result);
}

function stateNodes(state, result, text) {
  if (state === "running") {
    return [make("span", "ring"), make("span", "only-heard", gettext("Running"))];
  }
  return [icon(CALL_ICONS[state], true), bdi(callWords(state, text, result.durationMs))];
}

function resultText(result) {
  if (result === undefined) return "";
  return typeof result.content === "string" ? result.content : JSON.stringify(result.content ?? result);
}
