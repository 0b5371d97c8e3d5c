// An answer, live or finished: reasoning folded, Markdown, tool calls, and how it ended.

import { clone, icon, make, setText } from "./dom.js";
import { clockTime } from "./format.js";
import { Prose } from "./prose.js";
import { finishWords } from "./words.js";

export class AnswerView {
  #parts;
  #prose = new Prose();
  #calls = new Map();

  constructor() {
    const { element, parts } = clone("t-answer");
    this.element = element;
    this.#parts = parts;
    parts.prose.replaceWith(this.#prose.element);
  }

  update(item) {
    const { heading, reasoning, reasoningWords, reasoningText, finish, finishText } = this.#parts;
    const time = item.createdAt ? `, ${clockTime(item.createdAt)}` : "";
    setText(heading, `Assistant${time}`);
    this.element.classList.toggle("live", item.live);
    reasoning.hidden = !item.reasoning;
    setText(reasoningWords, item.live && !item.text ? "Thinking" : "Thought");
    setText(reasoningText, item.reasoning);
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
  const state = call.result === undefined ? "" : call.result.error ? "failed" : "done";
  if (parts.state.dataset.state !== state) {
    parts.state.dataset.state = state;
    parts.state.replaceChildren(...stateNodes(state));
  }
  parts.result.hidden = result === "";
  setText(parts.result, result);
}

function stateNodes(state) {
  if (state === "failed") return [icon("triangle-alert", true), make("span", "", "Failed")];
  if (state === "done") return [icon("check", true), make("span", "", "Done")];
  return [];
}

function resultText(result) {
  if (result === undefined) return "";
  if (typeof result === "string") return result;
  if (typeof result.content === "string") return result.content;
  return JSON.stringify(result.content ?? result);
}
