// Where the thread is scrolled: it follows the end only while the person is at the end, and older
// rows that come in above move nothing.

const NEAR_PX = 48;

export class Scroll {
  #box;
  #toEnd;
  #atEnd = true;

  /** `toEnd` is the button that shows while the end is out of sight. */
  constructor(box, toEnd) {
    this.#box = box;
    this.#toEnd = toEnd;
    box.addEventListener("scroll", () => this.#look(), { passive: true });
    toEnd.addEventListener("click", () => this.follow());
    // What is drawn later, a formula or a diagram, grows by itself.
    const grown = new ResizeObserver(() => this.#atEnd && this.#jump());
    for (const element of [box, box.firstElementChild]) grown.observe(element);
  }

  /** Runs `change`, which may add or remove rows, and keeps the reader's place. */
  keeping(change) {
    const fromEnd = this.#box.scrollHeight - this.#box.scrollTop;
    const first = this.#box.querySelector("li");
    const before = first?.getBoundingClientRect().top;
    change();
    if (this.#atEnd) this.#jump();
    else if (first?.isConnected) this.#box.scrollTop += first.getBoundingClientRect().top - before;
    else this.#box.scrollTop = this.#box.scrollHeight - fromEnd;
    this.#look();
  }

  /** Goes to the end and stays there. */
  follow() {
    this.#atEnd = true;
    this.#jump();
    this.#look();
  }

  #jump() {
    this.#box.scrollTop = this.#box.scrollHeight;
  }

  #look() {
    const { scrollHeight, scrollTop, clientHeight } = this.#box;
    this.#atEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    this.#toEnd.hidden = this.#atEnd;
  }
}
