// The only way from HTML text to nodes. Everything that is not on the lists is dropped.

import "../vendor/purify.js";

const CONFIG = Object.freeze({
  RETURN_DOM_FRAGMENT: true,
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["class", "href", "start"],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
});

/** The nodes of an HTML text, safe to put into the page. Links open apart and tell nothing of us. */
export function sanitise(html) {
  const fragment = globalThis.DOMPurify.sanitize(html, CONFIG);
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
  return fragment;
}
