// A growing Markdown text as a list of top-level blocks. A finished block keeps its identity (the
// same object), so that whoever draws the list touches only what still grows.
//
// A block is {html}, or {code, language} for a fence at the top level.

export class BlockStream {
  #md;
  #text = "";
  #offset = 0;
  #settled = [];
  #references = {};
  blocks = [];

  constructor(md) {
    this.#md = md;
  }

  /** The blocks of `text`; only what follows the last settled boundary is parsed. */
  update(text) {
    const source = normalise(text);
    if (source === this.#text) return this.blocks;
    if (!source.startsWith(this.#text)) this.#forget();
    this.#text = source;
    let tail = this.#parse(source.slice(this.#offset), { ...this.#references });
    const boundary = lastBoundary(tail, source.slice(this.#offset));
    if (boundary !== null) {
      const end = this.#offset + boundary;
      this.#settled.push(...this.#parse(source.slice(this.#offset, end), this.#references));
      this.#offset = end;
      tail = this.#parse(source.slice(end), { ...this.#references });
    }
    return this.#keep([...this.#settled, ...tail]);
  }

  /**
   * The blocks of a text that is complete, parsed as a whole: a link whose address was defined
   * after its use is found only now.
   */
  settle(text) {
    this.#forget();
    this.#text = normalise(text);
    return this.#keep(this.#parse(this.#text, {}));
  }

  #keep(blocks) {
    this.blocks = blocks.map((block, at) => (same(this.blocks[at], block) ? this.blocks[at] : block));
    return this.blocks;
  }

  #forget() {
    this.#text = "";
    this.#offset = 0;
    this.#settled = [];
    this.#references = {};
  }

  #parse(source, references) {
    const env = { references };
    return groups(this.#md.parse(source, env)).map((tokens) => {
      const [first] = tokens;
      const line = first.map[0];
      if (first.type === "fence") {
        return { line, code: first.content, language: first.info.trim().split(/\s+/)[0] };
      }
      return { line, html: this.#md.renderer.render(tokens, this.#md.options, env) };
    });
  }
}

function normalise(text) {
  return text.replace(/\r\n?/g, "\n");
}

function same(one, other) {
  return (
    one !== undefined &&
    one.html === other.html &&
    one.code === other.code &&
    one.language === other.language
  );
}

/** The tokens of each top-level block. */
function groups(tokens) {
  const found = [];
  let depth = 0;
  for (const token of tokens) {
    if (depth === 0) found.push([]);
    found.at(-1).push(token);
    depth += token.nesting;
  }
  return found;
}

/**
 * Where the last block begins that no later text can join to the one before it: its first line is
 * complete, and either a blank line stands before it or its second line is complete too ("a|b" and
 * "-|-" make a table only together). Null if there is none.
 */
function lastBoundary(blocks, source) {
  const starts = [0];
  for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  const complete = starts.length - 1;
  for (const { line } of blocks.slice(1).reverse()) {
    const blankBefore = source.slice(starts[line - 1], starts[line]).trim() === "";
    if (line < complete && (blankBefore || line + 1 < complete)) return starts[line];
  }
  return null;
}
