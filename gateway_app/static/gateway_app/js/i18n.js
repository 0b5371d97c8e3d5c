// The page's language: Django's gettext in the browser. The catalogue stands in the page as JSON
// ({language, messages}), so that every word is there before the first script draws, without a
// script of its own. A message that the catalogue lacks stays as it is: the source is English.

const CONTEXT = "\u0004";
const FORMS = ["zero", "one", "two", "few", "many", "other"];

let messages = {};
let plurals = new Intl.PluralRules("en");

/** The page's language, for Intl. */
export let language = "en";

/** Takes a catalogue: {language, messages: {msgid: text, or a list of plural forms}}. */
export function load(catalogue) {
  language = catalogue.language;
  messages = catalogue.messages;
  plurals = new Intl.PluralRules(language);
}

export function gettext(msgid) {
  return messages[msgid] ?? msgid;
}

/** Whether the catalogue has the message; the source's own language has no catalogue. */
export function knows(msgid) {
  return Object.hasOwn(messages, msgid);
}

/** The same word may need two translations: `context` tells which is meant. */
export function pgettext(context, msgid) {
  return messages[context + CONTEXT + msgid] ?? msgid;
}

export function ngettext(singular, plural, count) {
  const forms = messages[singular];
  if (!Array.isArray(forms)) return count === 1 ? singular : plural;
  return forms[formOf(count, forms.length)];
}

/** `%(name)s` from an object, or `%s` one after the other from a list; `%%` is a percent sign. */
export function interpolate(format, values) {
  let at = 0;
  return format.replace(/%(?:\((\w+)\))?([sd%])/g, (all, name, kind) => {
    if (kind === "%") return "%";
    return String(name === undefined ? values[at++] : values[name]);
  });
}

/** gettext numbers a language's plural forms in the order in which Intl names them. */
function formOf(count, known) {
  const { pluralCategories } = plurals.resolvedOptions();
  const used = FORMS.filter((form) => pluralCategories.includes(form));
  return Math.min(used.indexOf(plurals.select(count)), known - 1);
}

const carried = globalThis.document?.getElementById("catalogue");
if (carried) load(JSON.parse(carried.textContent));
