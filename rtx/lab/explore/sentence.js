// What does it remember of your sentence? Three character models predict the next letter of a text; each letter is shaded
// by how much that prediction changes if the letter is another one. Each model has a worker, so that typing never waits.

import { blues, shaded } from "./colours.js";
import { arrows, button, make, percent, printed, put, select, textInput } from "./page.js";

const SHOWN = 5, FAR = 10, WRITTEN = 60; // next letters shown; letters back that count as far; letters that a model writes
const STYLE = `
.rtx-page .model { margin: 10px 0; }
.rtx-page .line { font: 15px/1.75 ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap; }
.rtx-page .letters span { padding: 3px 0; cursor: pointer; }
.rtx-page .line output { color: #ad5f00; }
.rtx-page.dark .line output { color: #f0a63c; }
.rtx-page .letters span.unread { opacity: 0.7; }
.rtx-page .next { display: grid; grid-template-columns: repeat(${SHOWN}, 1fr); gap: 4px; max-width: 420px; min-height: 28px; }
.rtx-page .next button { font: 14px ui-monospace, monospace; padding: 1px; }`;

const strongest = (values) => values.indexOf(Math.max(...values));
const shown = (letter) => (letter === "\n" ? "⏎" : letter);
const sum = (values) => values.reduce((total, one) => total + one, 0);

export function show(page) {
  const { models, symbols, longest, worker: source } = page.data, unknown = symbols.indexOf("<unk>");
  const number = (letter) => (symbols.includes(letter) ? symbols.indexOf(letter) : unknown);
  /** What a letter is replaced by: an "e", or an "a" in the place of an "e"; a blank if it is neither letter nor blank. */
  const other = (letter) => (letter === "e" ? "a" : letter === " " || /\p{L}/u.test(letter) ? "e" : " ");
  /** The letters of the text, and how many of them the models read. */
  function parts({ text, read } = page.state) {
    const letters = [...text].slice(0, longest);
    return { letters, count: read ? Math.min(read, letters.length) : letters.length };
  }
  const choose = (count) => page.set({ read: count === parts().letters.length ? 0 : count });

  const line = textInput(page, "text", { label: "your text", maxLength: longest });
  line.addEventListener("input", () => page.state.read && page.set({ read: 0 }));
  select(page, "temperature", { label: "temperature of what is written", options: [0, 0.7, 1] });
  const whole = button(page, "Read the whole text", () => page.set({ read: 0 }));
  const place = make("div", { role: "application", tabIndex: 0, ariaLabel: "left and right choose how much is read" });
  const rows = models.map(({ name }, i) => {
    const letters = make("span", { className: "letters" }), added = make("output");
    const next = make("div", { className: "next" }, ...Array.from({ length: SHOWN }, () => make("button")));
    const write = () => (found[i].written ? (delete found[i].written, page.draw()) : send([workers[i]], { count: WRITTEN }));
    const writer = make("button", { textContent: "Write on", ariaLabel: `${name}: write on`, onclick: write });
    const head = make("div", { className: "row" }, make("b", { textContent: name }), writer);
    place.append(make("div", { className: "model" }, head, make("div", { className: "line" }, letters, added), next));
    return { letters, added, next, writer };
  });
  page.show(place);
  page.style(STYLE);
  page.longest = 3300;
  place.onpointerover = place.onpointerleave = ({ target }) => page.note(target.title);
  place.onkeydown = (event) => {
    const { letters, count } = parts(), moved = arrows(event.key, ["count", count, 1, letters.length]);
    if (!moved || event.target !== place || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(moved.count);
  };

  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { buffer, byteOffset } = page.weights;
  let id = 0, asked = null, found = [];
  const workers = models.map(({ network, from, to }, i) => {
    const worker = new Worker(address);
    worker.postMessage({ network, weights: new DataView(buffer.slice(byteOffset + from, byteOffset + to)) });
    worker.onmessage = ({ data }) => {
      if (data.id !== id) return;
      Object.assign(found[i], data);
      page.draw();
    };
    return worker;
  });
  page.ended(() => workers.forEach((worker) => worker.terminate()));
  /** Ask workers about the letters that are read; with `count`, their models write on. */
  function send(some, more) {
    const { letters, count } = parts(), read = count ? letters.slice(0, count) : ["\n"];
    const symbols = read.map(number), others = read.map(other).map(number);
    for (const worker of some) worker.postMessage({ id, symbols, others, temperature: page.state.temperature, unknown, ...more });
  }

  function drawRow({ letters: box, added, next, writer }, { next: p, changes, written = [] }, { letters, count }) {
    const most = Math.max(0.05, ...(changes ?? []));
    box.parentElement.style.minHeight = `${Math.ceil((9.2 * longest) / place.clientWidth)}lh`; // of a full text: what is below stays
    box.replaceChildren(...letters.slice(0, written.length ? count : longest).map((letter, i) => {
      const textContent = shown(letter), className = i < count ? "" : "unread";
      const span = make("span", { textContent, className, onclick: () => choose(i + 1) });
      if (i < count && changes) {
        span.style = shaded(blues(Math.sqrt(changes[i] / most), page.dark));
        span.title = `changes ${percent(changes[i])} of the prediction: “${printed(letter)}”, ${count - i} back`;
      }
      return span;
    }));
    const best = p ? [...p.keys()].filter((i) => i !== unknown).sort((one, two) => p[two] - p[one]).slice(0, SHOWN) : [];
    [...next.children].forEach((one, k) => { // they stay, so that the one that was pressed keeps the focus
      const i = best[k], textContent = p ? `${printed(symbols[i])} ${percent(p[i])}` : "…";
      const append = () => p && page.set({ text: [...letters.slice(0, count), symbols[i]].join(""), read: 0 });
      Object.assign(one, { textContent, disabled: count === longest, onclick: append });
    });
    put(added, written.slice(0, longest - count).map((i) => shown(symbols[i])).join(""));
    Object.assign(writer, { disabled: count === longest, ariaPressed: written.length > 0 });
  }

  /** In words: the likeliest letter, the letter that changes it most, and the part of all changes that far letters make. */
  function told({ next, changes }, name, letters) {
    if (!next) return `${name}: reading …`;
    const best = strongest(next), likeliest = `${name}: “${printed(symbols[best])}” (${percent(next[best])})`;
    if (!changes || !letters.length) return likeliest;
    const most = strongest(changes), far = sum(changes.slice(0, -FAR)) / (sum(changes) || 1);
    return `${likeliest}, most from “${printed(letters[most])}” ${changes.length - most} back, far ${percent(far)}`;
  }

  return (state) => {
    const { letters, count } = parts(state), text = letters.slice(0, count).join("");
    if (text !== asked) {
      [asked, found] = [text, models.map(() => ({}))];
      id++;
      send(workers);
    }
    rows.forEach((row, i) => drawRow(row, found[i], { letters, count }));
    whole.disabled = count === letters.length;
    const strange = letters.filter((letter) => !symbols.includes(letter)).length;
    const sentence = models.map(({ name }, i) => told(found[i], name, letters)).join("; ");
    place.ariaBusy = found.some(({ changes }) => !changes); // a worker is not done
    return [
      `The likeliest next letter, and the share of the influence that far letters have (over ${FAR} back). ${sentence}.`,
      strange && `${strange} of the letters did not occur in what the models read.`,
      count < letters.length && `The models read ${count} of ${letters.length} letters; a next letter that you press replaces the others.`,
      letters.length === longest && `The text is full: the models have learnt from pieces of ${longest} letters.`,
    ].filter(Boolean).join(" ");
  };
}
