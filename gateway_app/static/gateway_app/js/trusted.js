// The page's one policy of Trusted Types. Its header allows no other name, and no second one of it.
// The sanitiser alone makes markup with it; the highlighter's worker is the only script.

import { asset } from "./assets.js";

const policy = globalThis.trustedTypes?.createPolicy("dompurify", {
  createHTML: (html) => html,
  createScriptURL: (url) => {
    if (url !== asset("highlightWorker")) throw new TypeError("No script is loaded from there.");
    return url;
  },
});

/** For the sanitiser's own settings. */
export const sanitiserPolicy = policy && { TRUSTED_TYPES_POLICY: policy };

export function trustedWorker() {
  const url = asset("highlightWorker");
  return policy ? policy.createScriptURL(url) : url;
}
