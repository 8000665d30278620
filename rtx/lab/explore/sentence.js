// What does it remember of your sentence? Three character models predict the next letter of a text; each letter is shaded
// by how much that prediction changes if the letter is another one. A worker computes, so that typing never waits.

import { blues, css, inkOn } from "./colours.js";
import { make, stepped, textInput } from "./page.js";

const SHOWN = 5, FAR = 10; // next letters shown; letters back that count as far
const STYLE = `
.rtx-page .model { margin: 10px 0; }
.rtx-page .model b { display: block; }
.rtx-page .letters { font: 15px/1.75 ui-monospace, monospace; display: inline; overflow-wrap: anywhere; }
.rtx-page .letters span { padding: 3px 0; cursor: pointer; white-space: pre-wrap; }
.rtx-page .letters span.unread { opacity: 0.5; }
.rtx-page .next { display: inline-flex; flex-wrap: wrap; gap: 4px; margin-left: 10px; vertical-align: middle; }
.rtx-page .next button { font: 14px ui-monospace, monospace; padding: 1px 6px; min-height: 26px; }`;

const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const printed = (letter) => ({ " ": "␣", "\n": "⏎", "<unk>": "?" })[letter] ?? letter;

export function show(page) {
  const { models, symbols, longest, worker: source } = page.data;
  const numbers = new Map(symbols.map((symbol, i) => [symbol, i])), unknown = numbers.get("<unk>");
  const number = (letter) => numbers.get(letter) ?? unknown;
  const [space, e, a] = [" ", "e", "a"].map(number);
  /** What a letter is replaced by: an "e", or an "a" in the place of an "e"; a blank if it is neither letter nor blank. */
  const other = (symbol) => (symbol === e ? a : symbol === space || /\p{L}/u.test(symbols[symbol]) ? e : space);

  const line = textInput(page, "text", { label: "your text", maxLength: longest });
  line.addEventListener("input", () => page.state.read && page.set({ read: 0 }));
  const place = make("div", {}, make("style", { textContent: STYLE }));
  const rows = models.map(({ name }) => {
    const letters = make("div", { className: "letters" }), next = make("span", { className: "next" });
    place.append(make("div", { className: "model" }, make("b", { textContent: name }), letters, next));
    return { letters, next };
  });
  page.picture(place);
  place.tabIndex = 0;
  place.setAttribute("role", "application");
  place.onkeydown = (event) => {
    const { text, read } = page.state, to = stepped(event.key, Math.min(read || text.length, text.length), 1, text.length);
    if (to === undefined || event.target !== place) return;
    event.preventDefault();
    page.set({ read: to === text.length ? 0 : to });
  };

  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const bytes = ({ from, to }) => new DataView(page.weights.buffer.slice(page.weights.byteOffset + from, page.weights.byteOffset + to));
  worker.postMessage({ models: models.map((model) => ({ network: model.network, bytes: bytes(model) })) });
  let id = 0, asked = null, found = models.map(() => ({}));
  worker.onmessage = ({ data: { id: of, place: which, next, changes } }) => {
    if (of !== id) return;
    found[which] = { next, changes };
    page.draw();
  };

  function ask(letters) {
    const text = letters.join("");
    if (text === asked) return;
    asked = text;
    found = models.map(() => ({}));
    const read = letters.length ? letters.map(number) : [number("\n")];
    worker.postMessage({ id: ++id, symbols: read, others: read.map(other) });
  }

  function drawRow({ letters, next }, { next: p, changes = [] }, text, count) {
    const most = Math.max(0.05, ...changes);
    letters.replaceChildren(...text.map((letter, i) => {
      const span = make("span", { textContent: letter, className: i < count ? "" : "unread", title: i < count && changes.length ? `changes ${percent(changes[i])}` : "" });
      if (i < count && changes.length) {
        const colour = blues(Math.sqrt(changes[i] / most), page.dark);
        Object.assign(span.style, { background: css(colour), color: inkOn(colour) });
      }
      span.onclick = () => page.set({ read: i + 1 === text.length ? 0 : i + 1 });
      span.onpointerenter = () => page.note(span.title && `“${printed(letter)}”, ${count - i} back: another letter here ${span.title} of the prediction`);
      return span;
    }));
    const best = p ? p.map((share, i) => [share, i]).sort(([one], [two]) => two - one).slice(0, SHOWN) : [];
    next.replaceChildren(...best.map(([share, i]) => {
      const button = make("button", { type: "button", textContent: `${printed(symbols[i])} ${percent(share)}` });
      button.onclick = () => page.set({ text: text.slice(0, count).join("") + (symbols[i] === "<unk>" ? "" : symbols[i]), read: 0 });
      return button;
    }));
  }

  /** In words: the likeliest letter, and the part of all changes that letters far back make. */
  function told({ next, changes }, name) {
    if (!next) return `${name}: reading …`;
    const best = next.indexOf(Math.max(...next)), says = `${name}: “${printed(symbols[best])}” (${percent(next[best])})`;
    if (!changes?.length) return says;
    const sum = changes.reduce((total, one) => total + one, 0), far = changes.slice(0, -FAR).reduce((total, one) => total + one, 0);
    return `${says}, ${percent(sum ? far / sum : 0)} far`;
  }

  return ({ text, read }) => {
    const letters = [...text].slice(0, longest), count = read ? Math.min(read, letters.length) : letters.length;
    ask(letters.slice(0, count));
    rows.forEach((row, i) => drawRow(row, found[i], letters, count));
    const rest = letters.filter((letter) => !numbers.has(letter)).length;
    const strange = rest ? ` ${rest} of the letters did not occur in what the models read.` : "";
    const sentence = models.map(({ name }, i) => told(found[i], name)).join("; ");
    place.setAttribute("aria-busy", String(found.some(({ changes }) => !changes))); // the worker is not done
    place.setAttribute("aria-label", `${sentence}. Left and right choose the letter that is predicted.`);
    return `Next letter. ${sentence}. “Far”: the part of all influence that letters more than ${FAR} back have.${strange}`;
  };
}
