// Look-up: pairs such as a1 b7 c3 and a question b?; a trained Transformer answers, and arcs show where its heads look.
// Olsson et al. (2022), In-context Learning and Induction Heads.

import { SERIES } from "./chart.js";
import { load, plant, read } from "./network.js";
import { canvas, make, stepped, textInput } from "./page.js";
import { row, softmax } from "./tensor.js";

const ARCS = 100, BOX = 32, NARROWEST = 17, WIDEST = 44; // pixels: the arcs of a layer; a token, and its smallest and largest width
const LEAST = 0.04, LONG = 2300; // the smallest weight that is drawn; pixels of a long headline
const COLOURS = [0, 1, 2, 4].map((i) => SERIES[i]); // of a layer's heads
const percent = (share) => `${(100 * share).toFixed(0)} %`;
const strongest = (shares) => shares.indexOf(Math.max(...shares));

/** The logits after each token, and where each layer's heads look. Heads are named by layer and head, such as "1.0"; those in `off` add nothing. */
export function look(model, tokens, off = []) {
  const tree = plant(tokens), attentions = model.layers.filter(({ kind }) => kind === "attention").map(({ name }) => name);
  const names = off.map((name) => name.split(".")).map(([layer, head]) => `${attentions[layer]}.${head}`);
  const logits = read(model, tree, [...tokens.keys()], { off: names });
  return { logits, looked: attentions.map((name) => tree.rows[`${name}.looked`]) }; // by layer, token, head
}

/** What stands in a text: its tokens, its pairs and questions by place, and what is wrong with it, if anything. */
export function parse(text, symbols) {
  const tokens = [...text.toLowerCase().replace(/[\s,;]/g, "")], pairs = [], questions = [];
  const stop = (problem) => ({ tokens, pairs, questions, problem });
  const unknown = tokens.find((token) => !symbols.includes(token));
  if (unknown) return stop(`The model does not know “${unknown}”. It knows the letters a to ${symbols.match(/[a-z]/g).at(-1)}, digits and the question mark.`);
  for (let t = 0; t < tokens.length; t += 2) {
    const [letter, next] = tokens.slice(t, t + 2);
    if (!/[a-z]/.test(letter)) return stop(`A letter must stand before “${letter}”, as in ${letter === "?" ? "b?" : `b${letter}`}.`);
    if (next === "?") questions.push(t + 1);
    else if (/\d/.test(next) && !questions.length) pairs.push(t + 1);
    else if (/\d/.test(next)) return stop(`All pairs must stand before the first question: “${letter}${next}” comes after it.`);
    else return stop(`The letter “${letter}” needs a digit or a question mark behind it.`);
  }
  if (!pairs.length) return stop("Type pairs of a letter and a digit, then a question, such as a1 b7 c3 b?");
  if (!questions.length) return stop(`Now ask for one of the letters, such as ${tokens[0]}?`);
  return { tokens, pairs, questions, problem: "" };
}

/** What is odd about the pairs, in words. The model answers all the same. */
function oddities({ tokens, pairs, questions }) {
  const letters = pairs.map((t) => tokens[t - 1]), twice = [...new Set(letters.filter((letter, i) => letters.indexOf(letter) !== i))];
  const missing = questions.map((t) => tokens[t - 1]).find((letter) => !letters.includes(letter));
  const digits = (letter) => pairs.filter((t) => tokens[t - 1] === letter).map((t) => tokens[t]).join(" and ");
  return [
    missing && `No pair has “${missing}”, so the model can only guess.`,
    ...twice.map((letter) => `The letter “${letter}” has more than one digit: ${digits(letter)} are right.`),
    (pairs.length < 2 || pairs.length > 8) && `The model has learnt from 2 to 8 pairs; this text has ${pairs.length}.`,
  ];
}

export function show(page) {
  const { symbols, network } = page.data, model = load(network, page.weights);
  const heads = model.layers.filter(({ kind }) => kind === "attention").flatMap(({ heads }, layer) =>
    Array.from({ length: heads }, (_, head) => ({ layer, head, name: `${layer}.${head}`, label: `layer ${layer + 1}, head ${head + 1}` })));
  let text = parse("", symbols), found = null, answers = [], slots = [], under = -1, left = 0, across = 1;

  textInput(page, "text", { label: "pairs and questions", maxLength: 90 });
  for (const one of heads) {
    const dot = make("span", { textContent: "● " }), onclick = () => page.set({ off: toggled(page.state.off, one.name) });
    dot.style.color = COLOURS[one.head];
    one.button = make("button", { type: "button", onclick }, dot, `${one.head + 1}`);
    one.button.setAttribute("aria-label", one.label);
  }
  const toggled = (off, name) => (off.includes(name) ? off.filter((one) => one !== name) : [...off, name]);
  const of = (layer) => heads.filter((one) => one.layer === layer && !page.state.off.includes(one.name));
  const bar = (layer) => make("div", { className: "row" }, `Layer ${layer + 1}, heads`, ...heads.filter((one) => one.layer === layer).map(({ button }) => button));
  page.picture(bar(0));
  const picture = canvas(page, {
    height: 2 * ARCS + BOX,
    label: "",
    point(x) {
      const t = at(x);
      if (t !== under) draw(page.state, (under = t));
      return t >= 0 && found ? told(t) : "";
    },
    grab: (x) => (at(x) >= 0 ? { chosen: at(x) + 1 } : undefined),
    key(name) {
      const to = stepped(name, place(page.state) + 1, 1, text.tokens.length);
      return to && { chosen: to };
    },
  });
  picture.element.addEventListener("pointerleave", () => draw(page.state, (under = -1)));
  page.picture(bar(1));
  const headline = picture.element.closest(".rtx-page").querySelector(".sentence");

  /** The token at a place; an answer belongs to its question. */
  const at = (x) => slots.findLastIndex((slot) => slot <= (x - left) / across && (x - left) / across < slots.length + answers.length);
  /** The token whose arcs are drawn strongly: the one that was chosen, or else the last question. */
  const place = ({ chosen }) => (chosen && chosen <= text.tokens.length ? chosen : text.tokens.length) - 1;
  const shares = ({ layer, head }, t) => found.looked[layer][t][head];
  const middle = (t) => left + (slots[t] + 0.5) * across;

  /** Where the heads look from a token, in words. */
  function told(t) {
    const looks = [...of(0), ...of(1)].map((one) => {
      const s = strongest(shares(one, t));
      return `${one.label}: ${percent(shares(one, t)[s])} on “${text.tokens[s]}”`;
    });
    return `Token ${t + 1}, “${text.tokens[t]}”, looks most at: ${looks.join("; ")}`;
  }

  /** An arc from token t to token s, with a dot at s: above the tokens for layer 1, below them for layer 2. */
  function arc(pen, { layer, head }, t, s, weight, strong) {
    const way = layer ? 1 : -1, y = ARCS + (layer ? BOX : 0) + 4 * way, shift = (head - 0.5) * Math.min(8, 0.3 * across);
    const [from, to] = [middle(t) + shift, middle(s) + shift], high = y + way * Math.min(1.3 * ARCS - 16, 14 + 0.55 * (from - to));
    Object.assign(pen, { strokeStyle: COLOURS[head], fillStyle: COLOURS[head], lineWidth: 1 + 4 * weight });
    pen.globalAlpha = strong ? 0.4 + 0.6 * weight : 0.25 * weight;
    pen.beginPath();
    if (t === s) pen.arc(from, y + 7 * way, 6, 0, 2 * Math.PI);
    else {
      pen.moveTo(from, y);
      pen.bezierCurveTo(from, high, to, high, to, y);
    }
    pen.stroke();
    pen.beginPath();
    pen.arc(to, y, 2.5 + 2 * weight, 0, 2 * Math.PI);
    pen.fill();
    pen.globalAlpha = 1;
  }

  function drawArcs(pen, focus) {
    // the second layer reads what the first one has put at the token that it looks at
    const paths = [[focus, ...of(1).map((one) => strongest(shares(one, focus)))], [focus]];
    for (const isStrong of [false, true])
      for (const one of [...of(0), ...of(1)])
        text.tokens.forEach((_, t) => {
          if (paths[one.layer].includes(t) !== isStrong) return;
          shares(one, t).forEach((weight, s) => weight >= LEAST && arc(pen, one, t, s, weight, isStrong));
        });
  }

  function draw(state, hovered) {
    const T = text.tokens.length, places = T + answers.length, focus = hovered >= 0 && hovered < T ? hovered : place(state);
    picture.resize(2 * ARCS + BOX, places * NARROWEST);
    const { pen, width } = picture.begin();
    across = Math.min(WIDEST, width / Math.max(1, places));
    left = (width - across * places) / 2;
    headline.style.minHeight = `${Math.ceil(LONG / width)}lh`; // so that the picture stays where it is
    slots = text.tokens.map((_, t) => t + answers.filter((one) => one.t < t).length);
    if (found) drawArcs(pen, focus);
    pen.textAlign = "center";
    const box = (slot, symbol, bold, edge, ink) => {
      Object.assign(pen, { strokeStyle: edge, fillStyle: ink, lineWidth: bold ? 2 : 1, font: `${bold ? 700 : 400} 17px ui-monospace, monospace` });
      pen.strokeRect(left + slot * across + 1.5, ARCS + 2, across - 3, BOX - 4);
      pen.fillText(symbol, left + (slot + 0.5) * across, ARCS + BOX / 2 + 1);
    };
    text.tokens.forEach((token, t) => box(slots[t], token, t === focus && found, t === focus && found ? page.ink : page.faint, page.ink));
    const [good, bad] = page.dark ? ["#7cc4ff", "#ff9d80"] : ["#0063a6", "#b3400c"];
    for (const { t, symbol, sources, right } of answers) {
      const ink = sources.length && !right.includes(symbol) ? bad : good;
      box(slots[t] + 1, symbol, true, ink, ink);
      pen.font = "12px system-ui, sans-serif";
      pen.fillText(!sources.length ? "?" : right.includes(symbol) ? "✓" : "✗", left + (slots[t] + 1.5) * across, ARCS - 9);
    }
  }

  /** The head of a layer, among those that are on, with the largest mean weight from tokens to others: [[t, sources]]. */
  function best(layer, links) {
    const mean = (one) => links.reduce((sum, [t, sources]) => sum + sources.reduce((all, s) => all + shares(one, t)[s], 0), 0) / links.length;
    const means = of(layer).map(mean), i = strongest(means);
    return `${of(layer)[i].label} gives ${percent(means[i])}`;
  }

  /** What the two layers do, in words. */
  function steps() {
    const links = answers.filter(({ sources }) => sources.length).map(({ t, sources }) => [t, sources]);
    return [
      of(0).length ? `Match: ${best(0, text.pairs.map((t) => [t, [t - 1]]))} of a digit's attention to its letter.` : "Layer 1 is off: no digit knows its letter.",
      links.length && (of(1).length ? `Copy: ${best(1, links)} of the question's attention to the right digit.` : "Layer 2 is off: nothing is copied."),
    ];
  }

  function answered() {
    return text.questions.map((t) => {
      const sources = text.pairs.filter((s) => text.tokens[s - 1] === text.tokens[t - 1]), right = sources.map((s) => text.tokens[s]);
      const shares = softmax(row(found.logits, t)), best = strongest(shares);
      return { t, sources, right, symbol: symbols[best], share: shares[best] };
    });
  }

  return (state) => {
    text = parse(state.text, symbols);
    found = text.problem ? null : look(model, text.tokens.map((token) => symbols.indexOf(token)), state.off);
    answers = found ? answered() : [];
    for (const { button, name } of heads) {
      button.setAttribute("aria-pressed", String(!state.off.includes(name)));
      button.style.textDecoration = state.off.includes(name) ? "line-through" : "";
    }
    draw(state, under);
    const said = answers.map(({ t, symbol, share, right }) =>
      `${text.tokens[t - 1]}? is ${symbol} (${percent(share)} sure${!right.length || right.includes(symbol) ? "" : `; right is ${right.join(" or ")}`})`);
    const sentence = text.problem || [`The model says: ${said.join(", ")}.`, ...oddities(text), ...steps()].filter(Boolean).join(" ");
    picture.describe(`${sentence} Left and right choose the token whose arcs are strong.`);
    return sentence;
  };
}
