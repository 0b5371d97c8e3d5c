// Where the thread is scrolled: it follows the end only while the person is at the end; else what
// is read stays where it stands, whatever comes or grows above it: older rows, a formula, a diagram.
// The place is mended once a frame, after the layout that the change needs anyway.

const NEAR_PX = 48;

export class Scroll {
  #box;
  #rows;
  #toEnd;
  #atEnd = true;
  #top = 0;
  #anchors = [];

  /** `rows` holds the rows; `toEnd` is the button that shows while the end is out of sight. */
  constructor(box, rows, toEnd) {
    this.#box = box;
    this.#rows = rows;
    this.#toEnd = toEnd;
    box.addEventListener("scroll", () => this.#look(), { passive: true });
    toEnd.addEventListener("click", () => this.follow());
    const grown = new ResizeObserver(() => (this.#atEnd ? this.#jump() : this.#mend()));
    for (const element of [box, box.firstElementChild]) grown.observe(element);
  }

  /** Goes to the end and stays there. */
  follow() {
    this.#atEnd = true;
    this.#jump();
    this.#toEnd.hidden = true;
  }

  /** What changes next leaves this element where it stands, though the end may come into sight. */
  hold(element) {
    this.#atEnd = false;
    this.#anchors = [{ element, offset: this.#offset(element) }];
  }

  #jump() {
    this.#box.scrollTop = this.#box.scrollHeight;
    this.#top = this.#box.scrollTop;
  }

  /** The rows moved: the view goes with what was at its top. */
  #mend() {
    const anchor = this.#anchors.find(({ element }) => element.isConnected);
    if (anchor !== undefined) this.#box.scrollTop += this.#offset(anchor.element) - anchor.offset;
    this.#look();
  }

  /** Only who moves up leaves the end: what grew meanwhile does not part them from it. */
  #look() {
    const { scrollHeight, scrollTop, clientHeight } = this.#box;
    const stays = this.#atEnd && scrollTop >= this.#top - 1;
    this.#top = scrollTop;
    this.#atEnd = stays || scrollHeight - scrollTop - clientHeight < NEAR_PX;
    this.#toEnd.hidden = this.#atEnd;
    if (!this.#atEnd) this.#anchor();
  }

  /** Notes what is at the top of the view: a block of an answer, and the row, should the block go. */
  #anchor() {
    const { top } = this.#box.getBoundingClientRect();
    const row = firstBelow(this.#rows.children, top);
    const block = row && firstBelow(row.querySelectorAll(".prose > *"), top);
    const found = [block, row].filter(Boolean);
    this.#anchors = found.map((element) => ({ element, offset: this.#offset(element) }));
  }

  /** Where it stands in what is scrolled. */
  #offset(element) {
    return element.getBoundingClientRect().top + this.#box.scrollTop;
  }
}

/** The first of the elements, which stand one below the other, that ends below `top`. */
function firstBelow(elements, top) {
  let from = 0;
  let to = elements.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (elements[middle].getBoundingClientRect().bottom > top) to = middle;
    else from = middle + 1;
  }
  return elements[from] ?? null;
}
