// The only way from HTML text to nodes. Everything that is not on the lists is dropped.

import "../vendor/purify.js";
import { sanitiserPolicy } from "./trusted.js";

const OWN_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

const CONFIG = Object.freeze({
  ...sanitiserPolicy,
  RETURN_DOM_FRAGMENT: true,
  ALLOWED_TAGS: [
    "a", "blockquote", "br", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "img", "li",
    "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["alt", "class", "href", "src", "start"],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
});

/**
 * The nodes of an HTML text, safe to put into the page. Links open apart and tell nothing of us; an
 * image is there only if it carries its own bytes.
 */
export function sanitise(html) {
  const fragment = globalThis.DOMPurify.sanitize(html, CONFIG);
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
  for (const image of fragment.querySelectorAll("img")) {
    if (!OWN_IMAGE.test(image.getAttribute("src") ?? "")) image.remove();
  }
  return fragment;
}
