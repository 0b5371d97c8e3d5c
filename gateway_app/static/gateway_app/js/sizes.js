// Whether a message fits into one frame, told before it is sent.

import { formatBytes } from "./format.js";
import { tooLargeWords } from "./words.js";

/** No character takes more bytes in a frame: a control character is escaped as \u0000. */
const MOST_BYTES = 6;
const ENVELOPE_BYTES = 1024;

/** Why this text cannot be sent, or "". Measures only what may be too large. */
export function sizeProblem(text, limit) {
  if (text.length * MOST_BYTES + ENVELOPE_BYTES <= limit) return "";
  const size = new TextEncoder().encode(JSON.stringify(text)).length + ENVELOPE_BYTES;
  return size > limit ? tooLargeWords(formatBytes(size), formatBytes(limit)) : "";
}
