// Keeps an admin page up to date while somebody looks at it.
//
// An element with `data-live` names the address that answers with the same parts again, and
// `data-live-every` the pause in milliseconds. With `data-live-pulse` a small address is asked
// first, and the parts only when its answer changed. Each part (`data-live-part`, with an id) is
// renewed child by child: what did not change keeps its node, its scroll and its selection.
// The answer is parsed by the browser as a document that runs nothing; no markup is made here.

const region = document.querySelector("[data-live]");

/** What a node was when it came, where a script drew something else in its place. */
export const stored = new WeakMap();

function fetchDocument(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.onload = () =>
      request.status === 200 && request.response
        ? resolve(request.response)
        : reject(new Error(`The page answered ${request.status}.`));
    request.onerror = () => reject(new Error("The server did not answer."));
    request.send();
  });
}

// What a person unfolded stays unfolded in the new nodes.
function carryOpen(old, fresh) {
  const before = old.querySelectorAll("details:not(.h-source)");
  const after = fresh.querySelectorAll("details");
  for (let place = 0; place < Math.min(before.length, after.length); place += 1) {
    after[place].open = before[place].open;
  }
}

function keyOf(node, place) {
  return node.id || `${node.nodeName} ${place}`;
}

// `old` becomes `fresh`; its children with the same id are kept where they are equal.
function renew(old, fresh) {
  const known = stored.get(old) ?? old;
  if (known !== old) carryOpen(old, known);
  carryOpen(old, fresh);
  if (known.isEqualNode(fresh)) return;
  const sameShell =
    old.nodeName === fresh.nodeName && old.cloneNode(false).isEqualNode(fresh.cloneNode(false));
  if (!sameShell || !fresh.children.length || !fresh.querySelector("[id]")) {
    old.replaceWith(document.adoptNode(fresh));
    return;
  }
  const children = new Map([...old.children].map((node, place) => [keyOf(node, place), node]));
  let last = null;
  for (const [place, node] of [...fresh.children].entries()) {
    const key = keyOf(node, place);
    const kept = children.get(key);
    children.delete(key);
    if (kept) {
      const before = kept.previousElementSibling;
      if (before !== last) old.insertBefore(kept, last ? last.nextElementSibling : old.firstChild);
      renew(kept, node);
    } else {
      old.insertBefore(document.adoptNode(node), last ? last.nextElementSibling : old.firstChild);
    }
    last = last ? last.nextElementSibling : old.firstElementChild;
  }
  for (const gone of children.values()) gone.remove();
}

function atEnd() {
  const page = document.scrollingElement;
  return page.scrollHeight - page.scrollTop - page.clientHeight < 24;
}

// Every part of the page says what the answer says; the view and the focus stay where they are.
export function renewParts(answer) {
  const pinned = region.hasAttribute("data-live-pin") && atEnd();
  const focused = document.activeElement?.id;
  for (const part of region.querySelectorAll("[data-live-part]")) {
    const fresh = answer.getElementById(part.id);
    if (fresh) renew(part, fresh);
  }
  document.dispatchEvent(new Event("renewed"));
  if (focused && document.activeElement?.id !== focused) {
    document.getElementById(focused)?.focus({ preventScroll: true });
  }
  if (pinned) document.scrollingElement.scrollTop = document.scrollingElement.scrollHeight;
}

async function changed(seen) {
  const address = region.dataset.livePulse;
  if (!address) return "always";
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`The page answered ${answer.status}.`);
  const pulse = JSON.stringify(await answer.json());
  return pulse === seen ? seen : pulse;
}

async function follow() {
  const pause = Number(region.dataset.liveEvery) || 3000;
  let seen = region.dataset.livePulseSeen || "";
  let wait = pause;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (document.hidden) {
      await new Promise((resolve) =>
        document.addEventListener("visibilitychange", resolve, { once: true }),
      );
    }
    try {
      const pulse = await changed(seen);
      if (pulse === "always" || pulse !== seen) {
        renewParts(await fetchDocument(region.dataset.live));
        seen = pulse;
      }
      wait = pause;
    } catch {
      wait = Math.min(wait * 2, 60_000); // the page stays as it was; a server that is back is met
    }
  }
}

if (region) follow();
