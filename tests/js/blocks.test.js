import assert from "node:assert/strict";
import { test } from "node:test";

import { BlockStream } from "../../gateway_app/static/gateway_app/js/blocks.js";
import { markdown } from "../../gateway_app/static/gateway_app/js/markdown.js";
import { counting, plain, random, whole } from "./parsing.js";

const PIECES = [
  "word ", "two words", "\n", "\n", "\n\n", "- item", "* item", "1. one", "2. two", "  ", "    ",
  "# head", "###", "> quote", ">", "```", "```js\n", "~~~\n", "---", "===", "***", "a|b\n", "-|-\n",
  "|:-|-:|\n", "| x | y |\n", "$$", "$$\n", "\\[", "\\]", "$x$", "**bold**", "*", "`code`", "[link](https://example.org)", "\\", "|",
  "<b>raw</b>", "http://example.org ", "![pic](https://example.org/p.png)", "\r\n", "\t", "1", "-", "+ ",
];

test("it shows after every piece what parsing the whole text would show", () => {
  for (let seed = 1; seed <= 400; seed++) {
    const next = random(seed);
    const stream = new BlockStream(markdown);
    const some = Array.from({ length: 6 }, () => PIECES[Math.floor(next() * PIECES.length)]);
    let text = "";
    for (let step = 0; step < 40; step++) {
      const piece = next() < 0.3 ? "\n" : some[Math.floor(next() * some.length)];
      for (const chunk of next() < 0.5 ? [piece] : [...piece]) {
        text += chunk;
        assert.deepEqual(plain(stream.update(text)), whole(text), `seed ${seed}: ${JSON.stringify(text)}`);
      }
    }
  }
});

test("it takes back what a later character unmakes", () => {
  const texts = [
    "para\na|b\n-|-x\nend\n\nmore",
    "para\n\na|b\n-|-\n1|2\n\nmore",
    "1. one\n\n2. two\n\n  3. three",
    "one\n#two\n# three\nfour",
    "one\n***two\n***\nthree",
    "one\n```x`y\n```\ncode\n```\nafter",
    "- one\n- two\n\n  still two\n\nout\n\n    code",
  ];
  for (const text of texts) {
    const stream = new BlockStream(markdown);
    for (let end = 1; end <= text.length; end++) {
      const part = text.slice(0, end);
      assert.deepEqual(plain(stream.update(part)), whole(part), JSON.stringify(part));
    }
  }
});

test("it keeps the objects of finished blocks while the text grows", () => {
  const stream = new BlockStream(markdown);
  const first = stream.update("# Head\n\nOne paragraph.\n\n```py\nx = 1\n```\n\nLast");
  const later = stream.update("# Head\n\nOne paragraph.\n\n```py\nx = 1\n```\n\nLast words, and more.");
  assert.equal(first.length, 4);
  for (const at of [0, 1, 2]) assert.equal(later[at], first[at]);
  assert.notEqual(later[3], first[3]);
});

test("it keeps them when the text is complete", () => {
  const stream = new BlockStream(markdown);
  const live = stream.update("One.\n\nTwo.\n\nThree.");
  const done = stream.settle("One.\n\nTwo.\n\nThree.");
  assert.deepEqual(live, done);
  done.forEach((block, at) => assert.equal(block, live[at]));
});

test("it finds a link that was defined after its use once the text is complete", () => {
  const text = "See [the page][p].\n\nMore.\n\n[p]: https://example.org/\n";
  const stream = new BlockStream(markdown);
  for (let end = 1; end <= text.length; end++) stream.update(text.slice(0, end));
  assert.doesNotMatch(stream.blocks[0].html, /href/);
  assert.match(stream.settle(text)[0].html, /href="https:\/\/example.org\/"/);
});

test("it uses a link defined before, also when its address came in pieces", () => {
  const text = "[p]: https://example.org/page\n\nOne.\n\nTwo.\n\nSee [it][p].\n\nEnd.\n";
  const stream = new BlockStream(markdown);
  for (let end = 1; end <= text.length; end++) stream.update(text.slice(0, end));
  assert.deepEqual(plain(stream.blocks), whole(text));
  assert.match(stream.blocks[2].html, /example.org\/page/);
});

test("it parses only the unfinished end of a long text", () => {
  const parsed = [];
  const stream = new BlockStream(counting(parsed));
  let text = "";
  for (let at = 0; at < 300; at++) {
    text += `Paragraph ${at} of a long answer.\n\n`;
    stream.update(text);
  }
  assert.equal(stream.blocks.length, 300);
  assert.ok(Math.max(...parsed) < 200, `parsed ${Math.max(...parsed)} characters at once`);
});

test("it starts anew when the text is another one", () => {
  const stream = new BlockStream(markdown);
  stream.update("One.\n\nTwo.\n\nThree.\n\nFour.");
  assert.deepEqual(plain(stream.update("Other.")), whole("Other."));
});

test("it gives lists and tables in parts, and those that stand there already stay the same", () => {
  const text = "| a | b |\n|-|-|\n| 1 | 2 |\n| 3 | 4 |\n\n3. three\n   - under\n4. four\n\nEnd";
  const [table, list, end] = new BlockStream(markdown).update(text);
  assert.equal(table.pieces.length, 2);
  assert.match(table.frame[0], /<table>[^]*<tbody>/);
  assert.equal(list.pieces.length, 2);
  assert.match(list.frame[0], /^<ol start="3">/);
  assert.match(list.pieces[0], /under/);
  assert.equal(end.pieces, undefined);
  const more = new BlockStream(markdown).update("3. three\n   - under\n4. four, and more\n5. five")[0];
  assert.equal(more.pieces[0], list.pieces[0]);
  assert.deepEqual(more.frame, list.frame);
});

const SENTENCES = "Some *words* of a long `text`, with [a link](https://example.org/) & more. ";
const LONG_BLOCKS = {
  paragraph: SENTENCES.repeat(1500),
  "paragraph of lines": `${SENTENCES}\n`.repeat(1500),
  "words without spaces": "\u5929\u5730\u7384\u9ec4".repeat(25000),
  "one word": "a".repeat(100000),
  quote: `> ${SENTENCES}\n`.repeat(1500),
  "quote of paragraphs": `> ${SENTENCES}\n>\n`.repeat(1500),
  "nested quotes": `> > > ${SENTENCES}\n`.repeat(1500),
  "quote in one line": `> ${SENTENCES.repeat(1500)}`,
};

for (const [name, text] of Object.entries(LONG_BLOCKS)) {
  test(`it parses only the end of a long ${name}, and in the end what is there`, () => {
    const parsed = [];
    const stream = new BlockStream(counting(parsed));
    for (let end = 0; end < text.length; end += 700) {
      const [block] = stream.update(text.slice(0, end + 700));
      assert.equal(stream.blocks.length, 1);
      if (end > 20000) assert.equal(block.growing, true);
    }
    assert.ok(Math.max(...parsed) < 10000, `parsed ${Math.max(...parsed)} characters at once`);
    const ended = `${text}\n\nAfter.\n\n`;
    assert.deepEqual(plain(stream.update(ended)), whole(ended));
    assert.deepEqual(plain(stream.settle(ended)), whole(ended));
  });
}

test("it keeps the words of a long block in order while it grows", () => {
  const text = Array.from({ length: 9000 }, (_, at) => `w${at}`).join(" ");
  for (const [before, line] of [["", "\n"], ["> ", "\n> "]]) {
    const stream = new BlockStream(markdown);
    const source = before + text.replaceAll("00 ", `00${line}`);
    for (let end = 0; end < source.length; end += 501) {
      const [{ html }] = stream.update(source.slice(0, end + 501));
      const words = html.replaceAll(/<[^>]*>/g, " ").split(/\s+/).filter(Boolean);
      const whole = words.slice(0, -1);
      assert.deepEqual(whole, text.split(" ").slice(0, whole.length));
    }
  }
});

test("it sees that a long block has become another one", () => {
  for (const end of ["\n===\n", "\n- item", "\n```\ncode", "\n\n> quote", "\n\n- [x][y]\n\n[y]: z"]) {
    const stream = new BlockStream(markdown);
    stream.update(LONG_BLOCKS.paragraph);
    assert.equal(stream.update(`${LONG_BLOCKS.paragraph}more`)[0].growing, true);
    const text = `${LONG_BLOCKS.paragraph}more${end}`;
    assert.deepEqual(plain(stream.update(text)), whole(text), JSON.stringify(end));
  }
});
