// A paragraph or a quote that grew long and still grows, at the top level. Only its end is parsed
// again when more of it comes; what stands before the end is kept in pieces. So emphasis that goes
// over from one piece to the next is not seen as such, and a quote within a quote is parted there,
// until the block is over and is parsed as a whole.

const LONG = 8192;
const OPEN = 2048;
const KINDS = new Set(["paragraph_open", "blockquote_open"]);
const MARKS = /^(?: {0,3}> ?)*/;
const LETTER = /\p{L}/u;
const APART = /[\s\p{P}\p{S}]/u;
const TOGETHER = /[\p{L}\p{N}]/u;

export class LongBlock {
  #parse;
  #kind = null;
  #frame = null;
  #pieces = [];
  #marks = "";
  #rest = "";
  block = null;

  /**
   * The one block that `source` is, if it is such a one; else null. `parse` gives, for a source, the
   * tokens of each block and what renders some of them.
   */
  static of(source, _, parse) {
    if (source.length <= LONG) return null;
    const block = new LongBlock(parse);
    return block.append(source) !== null && block.#pieces.length > 0 ? block : null;
  }

  constructor(parse) {
    this.#parse = parse;
  }

  /** Takes what was added; the block as it is now, or null if it is over or has become another. */
  append(added) {
    this.#rest += added;
    let last = this.#inner(this.#rest);
    if (last !== null && this.#rest.length > LONG && this.#cut()) last = this.#inner(this.#rest);
    if (last === null) return null;
    const pieces = [...this.#pieces, last];
    this.block = { html: pieces.join(""), frame: this.#frame, pieces, growing: true };
    return this.block;
  }

  /** Makes a piece of what is not the end; false if there is no place to cut at. */
  #cut() {
    const at = placeToCut(this.#rest.slice(0, -OPEN));
    const piece = at > 0 ? this.#inner(this.#rest.slice(0, at)) : null;
    if (piece === null) return false;
    const blank = this.#rest[at - 1].trim() === "";
    this.#pieces.push(blank ? `${piece}\n` : piece);
    const line = this.#rest.slice(this.#rest.lastIndexOf("\n", at - 1) + 1, at);
    this.#marks = MARKS.exec(line)[0] || this.#marks;
    this.#rest = this.#rest.slice(at);
    return true;
  }

  /** The HTML within the block that this text is; null if it is not one block of the kind. */
  #inner(text) {
    const { groups, render } = this.#parse(this.#marks + text);
    const [tokens] = groups;
    if (groups.length !== 1 || !KINDS.has(tokens[0].type)) return null;
    this.#kind ??= tokens[0].type;
    if (tokens[0].type !== this.#kind) return null;
    this.#frame ??= [render(tokens.slice(0, 1)), render(tokens.slice(-1))];
    return render(tokens.slice(1, -1));
  }
}

/** Before the last word of the text, or within it where there is but one; 0 if there is none. */
function placeToCut(text) {
  let within = 0;
  for (let at = text.length - 1; at > 0; at -= 1) {
    if (!LETTER.test(text[at])) continue;
    if (APART.test(text[at - 1])) return at;
    if (within === 0 && TOGETHER.test(text[at - 1])) within = at;
  }
  return within;
}
