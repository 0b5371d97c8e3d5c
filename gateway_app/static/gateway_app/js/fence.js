// A fence that is still being written, at the top level: its lines are code until one closes it, so
// nothing of it has to be parsed again when more of it comes.

const OPENER = /^(`{3,}|~{3,})[^\n]*\n/;

export class OpenFence {
  #closer;
  #complete;
  #partial;
  block;

  /** The fence that `source` is as a whole, if it is open for good; else null. */
  static of(source, block) {
    const opener = OPENER.exec(source);
    if (opener === null || block.code === undefined || block.closed) return null;
    // "```a|b" and "-|-" make a table: only a second whole line shows that it is a fence.
    if (!source.includes("\n", opener[0].length)) return null;
    return new OpenFence(opener[1], source.slice(opener[0].length), block);
  }

  constructor(marker, code, block) {
    this.#closer = new RegExp(`^ {0,3}${marker[0]}{${marker.length},}[ \\t]*$`);
    const end = code.lastIndexOf("\n") + 1;
    this.#complete = code.slice(0, end);
    this.#partial = code.slice(end);
    this.block = block;
  }

  /** Takes what was added; what follows the fence if that closed it, else null. */
  append(added) {
    const text = this.#partial + added;
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      if (this.#closer.test(text.slice(start, end))) {
        this.#show(this.#complete + text.slice(0, start), true);
        return text.slice(end + 1);
      }
      start = end + 1;
    }
    this.#complete += text.slice(0, start);
    this.#partial = text.slice(start);
    // A last line that would close the fence is no code, even before its own end has come; one of
    // nothing but blanks is no line yet.
    const closed = this.#closer.test(this.#partial);
    const shown = closed || /^[ \t]*$/.test(this.#partial) ? "" : this.#partial;
    this.#show(this.#complete + shown, closed);
    return null;
  }

  #show(code, closed) {
    this.block = { ...this.block, code, closed };
  }
}
