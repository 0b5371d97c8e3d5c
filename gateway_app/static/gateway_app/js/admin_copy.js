// A button that copies the text of another element, and says whether it did.

import { copyText } from "./dom.js";

function bind(button) {
  const source = document.getElementById(button.dataset.copies);
  const told = document.getElementById(button.dataset.tells);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await copyText(source.textContent);
      told.textContent = button.dataset.copied;
    } catch {
      told.textContent = button.dataset.failed;
      getSelection().selectAllChildren(source);
    }
  });
}

document.querySelectorAll("[data-copies]").forEach(bind);
