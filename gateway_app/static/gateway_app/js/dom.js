// Small moves on the page. Parts of a template are found by data-part.

const SVG = "http://www.w3.org/2000/svg";

/** The first element of the template, with its parts by name. */
export function clone(templateId) {
  const element = document.getElementById(templateId).content.firstElementChild.cloneNode(true);
  return { element, parts: partsOf(element) };
}

export function partsOf(root) {
  const found = {};
  for (const element of root.querySelectorAll("[data-part]")) found[element.dataset.part] = element;
  if (root.dataset?.part) found[root.dataset.part] = root;
  return found;
}

export function icon(name, small = false) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", small ? "icon icon-s" : "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Draws another icon in place; nothing happens if it is the same. */
export function setIcon(svg, name) {
  const use = svg.firstElementChild;
  if (use.getAttribute("href") !== `#i-${name}`) use.setAttribute("href", `#i-${name}`);
}

/** Touches the page only if the text differs: a screen reader hears every touch. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** A value with its unit, kept together whatever the direction of the text round it. */
export function bdi(text) {
  return make("bdi", "", text);
}

/**
 * Makes the element's children those of `nodes`, in order, moving as little as possible: a node
 * that stays is not touched, so focus, selection and open details survive.
 */
export function placeInOrder(parent, nodes) {
  const { children } = parent;
  if (nodes.length === children.length && nodes.every((node, at) => node === children[at])) return;
  const wanted = new Set(nodes);
  for (const child of [...children]) if (!wanted.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const node of nodes) {
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
  }
}

/** Text that mostly grows at its end: what stands there already is not touched. */
export class GrowingText {
  #node = document.createTextNode("");

  constructor(element) {
    element.replaceChildren(this.#node);
  }

  update(text) {
    const { data } = this.#node;
    if (text === data) return;
    if (text.startsWith(data)) this.#node.appendData(text.slice(data.length));
    else this.#node.data = text;
  }
}

/**
 * One view per key: made by `create(item)`, fed by `view.update(item)`, placed in order. An item that
 * is the same object as before says nothing new.
 */
export class KeyedList {
  #parent;
  #create;
  #views = new Map();
  #shown = new Map();

  constructor(parent, create) {
    this.#parent = parent;
    this.#create = create;
  }

  update(items) {
    const views = new Map();
    const shown = new Map();
    for (const item of items) {
      const name = `${item.type}|${item.key}`;
      const view = this.#views.get(name) ?? this.#create(item);
      if (this.#shown.get(name) !== item) view.update(item);
      views.set(name, view);
      shown.set(name, item);
    }
    this.#views = views;
    this.#shown = shown;
    placeInOrder(this.#parent, [...views.values()].map((view) => view.element));
  }
}

/** The text is in the clipboard. Without https browsers have the old way alone: of what is selected. */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const focused = document.activeElement;
  const field = make("textarea");
  Object.assign(field.style, { position: "fixed", insetBlockStart: 0, opacity: 0 });
  field.readOnly = true;
  field.value = text;
  // A modal dialog makes the rest of the page inert: the field has to be inside it.
  (document.querySelector("dialog:modal") ?? document.body).append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  if (!copied) throw new Error("The browser copied nothing.");
}
