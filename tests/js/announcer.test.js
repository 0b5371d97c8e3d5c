import assert from "node:assert/strict";
import { test } from "node:test";

import { Announcer } from "../../gateway_app/static/gateway_app/js/announcer.js";

test("it no longer says that an answer comes once it has failed", () => {
  const [status, alert] = [{ textContent: "" }, { textContent: "" }];
  const announcer = new Announcer({ status, alert });
  announcer.tell({ polite: "Assistant is answering" });
  announcer.tell(null);
  assert.equal(status.textContent, "Assistant is answering");
  announcer.tell({ alert: "The model did not answer." });
  assert.deepEqual([status.textContent, alert.textContent], ["", "The model did not answer."]);
});
