// What the server says, in the page's language. It comes in English, with the messages of which it
// was made: [{text, values}], to be found in the page's catalogue. A value that is such a list is a
// sentence itself. Where the catalogue lacks a message, all of it stays as it came.

import { gettext, interpolate, knows, language } from "./i18n.js";

/** The sentence to show for `message`; `sentences` may be anything: a row may be a raw writer's. */
export function told(message, sentences) {
  if (!isMade(sentences) || !sentences.every(({ text }) => knows(text))) return message;
  return said(sentences);
}

function isMade(sentences) {
  return (
    Array.isArray(sentences) &&
    sentences.length > 0 &&
    sentences.every((one) => typeof one?.text === "string" && isValues(one.values))
  );
}

function isValues(values) {
  return typeof values === "object" && values !== null && Object.values(values).every(isValue);
}

function isValue(value) {
  return typeof value === "string" || typeof value === "number" || isMade(value);
}

function said(sentences) {
  return sentences.map(({ text, values }) => interpolate(gettext(text), shown(values))).join(" ");
}

function shown(values) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, written(value)]));
}

function written(value) {
  if (Array.isArray(value)) return said(value);
  return typeof value === "number" ? new Intl.NumberFormat(language).format(value) : value;
}
