// A file that the server makes, saved under the name that the server gives it.

import { make } from "./dom.js";
import { gettext } from "./i18n.js";

const KEPT_MS = 60_000; // Safari reads the file some time after the click
const NOT_HAD = gettext("The server could not be reached. Nothing was saved; try again.");

/** The name of the saved file. Throws an Error with a sentence for the person. */
export async function saveFile(address) {
  const { file, name } = await fetched(address);
  const link = make("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
  return name;
}

async function fetched(address) {
  let refused = NOT_HAD;
  try {
    const answer = await fetch(address, { cache: "no-store" });
    if (answer.ok) return { file: await answer.blob(), name: nameOf(answer) };
    refused = (await answer.json()).error.message;
  } catch {
    // no answer, half of one, or one of a proxy's own
  }
  throw new Error(refused);
}

function nameOf(answer) {
  return /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition"))[1];
}
