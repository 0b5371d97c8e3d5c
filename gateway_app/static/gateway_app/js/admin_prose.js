// A transcript's answers as the chat shows them: Markdown, by way of the same sanitiser. What was
// stored stays at hand below each, as it is. Code has its colours, unless it is very long.

import { stored } from "./admin_live.js";
import { CodeText } from "./code_text.js";
import { make } from "./dom.js";
import { AT_ONCE, runsOf } from "./highlighter.js";
import { gettext } from "./i18n.js";
import { grammarOf } from "./languages.js";
import { markdown } from "./markdown.js";
import { markup } from "./markup.js";

/** Draws every answer under `root` that is not drawn yet; the rows' own nodes are remembered. */
function drawAnswers(root) {
  for (const source of root.querySelectorAll("[data-markdown]")) {
    const row = source.closest(".h-row");
    if (!stored.has(row)) stored.set(row, row.cloneNode(true));
    draw(source);
  }
}

function draw(source) {
  const prose = make("div", "prose");
  prose.append(markup(markdown.render(source.textContent)));
  const fold = make("details", "h-fold h-source");
  const words = make("summary");
  words.textContent = gettext("As it is stored");
  source.removeAttribute("data-markdown");
  source.replaceWith(prose, fold);
  fold.append(words, source);
  for (const code of prose.querySelectorAll("pre > code[class]")) colour(code);
}

async function colour(code) {
  const source = code.textContent;
  const grammar = grammarOf(code.className.replace(/^language-/, ""));
  if (grammar === null || source.length > AT_ONCE) return;
  const runs = await runsOf(source, grammar);
  if (runs === null) return;
  const text = new CodeText(code);
  code.replaceChildren();
  text.update(source);
  await text.colour(runs);
}

drawAnswers(document);
document.addEventListener("renewed", () => drawAnswers(document));
