// The page's icon: with a dot while something unread waits.

export class Favicon {
  #link = document.querySelector("link[rel=icon]");
  #plain = this.#link.href;

  show(news) {
    const wanted = news ? this.#link.dataset.news : this.#plain;
    if (this.#link.href !== wanted) this.#link.href = wanted;
  }
}
