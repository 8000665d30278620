// Look-up: pairs such as a1 b7 c3 and a question b?; a trained Transformer answers, and arcs show where its heads look.
// Olsson et al. (2022), In-context Learning and Induction Heads.

import { SERIES } from "./chart.js";
import { canvas, make, stepped, textInput } from "./page.js";
import { add, attend, layerNorm, linear, matrix, readTensors, relu, row, softmax } from "./tensor.js";

const ARCS = 100, BOX = 32, NARROWEST = 17, WIDEST = 44; // pixels: the arcs of a layer; a token, and its smallest and largest width
const LEAST = 0.04; // the smallest weight that is drawn
const COLOURS = [0, 1, 2, 4].map((i) => SERIES[i]); // of a layer's heads
const percent = (share) => `${(100 * share).toFixed(0)} %`;
const named = ([layer, head]) => `layer ${layer + 1}, head ${head + 1}`;

/** The logits after each token, (T, V), and where each head of each layer looks. A head whose name is in `off` adds nothing. */
export function read({ weights, layers, heads, clip }, tokens, off = []) {
  const looked = [];
  let x = matrix(tokens.length, weights["embedding.weight"].shape[1]);
  tokens.forEach((token, t) => row(x, t).set(row({ columns: x.columns, values: weights["embedding.weight"].values }, token)));
  for (let layer = 0; layer < layers; layer++) {
    const of = (name) => weights[`backbone.blocks.${layer}.${name}`];
    const normed = (i) => layerNorm(x, of(`${i}.norm.weight`), of(`${i}.norm.bias`));
    const found = relative(normed(0), (name) => of(`0.sublayer.${name}`), heads, clip, (head) => off.includes(`${layer}.${head}`));
    looked.push(found.looked);
    x = add(x, found.output);
    const wide = relu(linear(normed(1), of("1.sublayer.expand.weight"), of("1.sublayer.expand.bias")));
    x = add(x, linear(wide, of("1.sublayer.contract.weight"), of("1.sublayer.contract.bias")));
  }
  return { logits: linear(x, weights["decoder.weight"], weights["decoder.bias"]), looked };
}

/** Attention with a vector for each distance up to `clip`, in keys and in values: Shaw et al. (2018), Eq. 3-5. */
function relative(x, of, heads, clip, off) {
  const [q, k, v] = ["query", "key", "value"].map((name) => linear(x, of(`${name}.weight`))), D = x.columns, width = D / heads;
  const [near, given] = [of("key_table").values, of("value_table").values], rows = clip + 1; // the last row is distance 0
  const place = (head, t, r) => (head * x.rows + t) * rows + r, far = (t, s) => clip + Math.max(s - t, -clip);
  const scores = new Float64Array(heads * x.rows * rows), shares = new Float64Array(scores.length); // by distance
  const each = (work) => {
    for (let head = 0; head < heads; head++)
      for (let t = 0; t < x.rows; t++)
        for (let r = 0; r < rows; r++)
          for (let i = 0; i < width; i++) work(head, place(head, t, r), t * D + head * width + i, r * width + i);
  };
  each((_, at, i, j) => (scores[at] += (q.values[i] * near[j]) / Math.sqrt(width)));
  const { mixed, looked } = attend(q, k, v, heads, { off, bias: (head, t, s) => scores[place(head, t, far(t, s))] });
  looked.forEach((all, head) => all.forEach((row, t) => row.forEach((share, s) => (shares[place(head, t, far(t, s))] += share))));
  each((head, at, i, j) => off(head) || (mixed.values[i] += shares[at] * given[j]));
  return { output: linear(mixed, of("output.weight")), looked };
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
  const letters = pairs.map((t) => tokens[t - 1]), twice = letters.find((letter, i) => letters.indexOf(letter) !== i);
  const missing = questions.map((t) => tokens[t - 1]).find((letter) => !letters.includes(letter));
  const digits = pairs.filter((t) => tokens[t - 1] === twice).map((t) => tokens[t]);
  return [
    missing && `No pair has “${missing}”, so the model can only guess.`,
    twice && `The letter “${twice}” has more than one digit: ${digits.join(" and ")}.`,
    (pairs.length < 2 || pairs.length > 8) && `The model has learnt from 2 to 8 pairs; this text has ${pairs.length}.`,
  ].filter(Boolean);
}

export function show(page) {
  const { symbols, layers, heads, clip } = page.data, model = { weights: readTensors(page.weights), layers, heads, clip };
  let text = parse("", symbols), found = null, answers = [], slots = [], under = -1, left = 0, across = 1;

  textInput(page, "text", { label: "pairs and questions", maxLength: 90 });
  const buttons = Array.from({ length: layers }, (_, layer) => Array.from({ length: heads }, (_, head) => headButton(layer, head)));
  const bar = (layer) => make("div", { className: "row" }, make("span", { textContent: `Layer ${layer + 1}, heads` }), ...buttons[layer]);
  page.picture(bar(0));
  const picture = canvas(page, {
    height: 2 * ARCS + BOX,
    label: "",
    point(x, y) {
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

  function headButton(layer, head) {
    const name = `${layer}.${head}`, dot = make("span", { textContent: "● " });
    const element = make("button", { type: "button" }, dot, `${head + 1}`);
    dot.style.color = COLOURS[head];
    element.setAttribute("aria-label", named([layer, head]));
    element.onclick = () => {
      const { off } = page.state;
      page.set({ off: off.includes(name) ? off.filter((one) => one !== name) : [...off, name] });
    };
    return element;
  }

  /** The token at a place; an answer belongs to its question. */
  const at = (x) => slots.findLastIndex((slot) => slot <= (x - left) / across && (x - left) / across < slots.length + answers.length);
  /** The token whose arcs are drawn strongly: the one that was chosen, or else the last question. */
  const place = ({ chosen }) => (chosen && chosen <= text.tokens.length ? chosen : text.tokens.length) - 1;
  const on = (layer, head) => !page.state.off.includes(`${layer}.${head}`);
  const strongest = (shares) => shares.indexOf(Math.max(...shares));

  /** Where the heads look from a token, in words. */
  function told(t) {
    const looks = found.looked.flatMap((rows, layer) => rows.map(([...all], head) => {
      const s = strongest(all[t]);
      return on(layer, head) && `${named([layer, head])}: ${percent(all[t][s])} on “${text.tokens[s]}”`;
    }));
    return `Token ${t + 1}, “${text.tokens[t]}”, looks most at: ${looks.filter(Boolean).join("; ")}`;
  }

  const middle = (t) => left + (slots[t] + 0.5) * across;

  /** An arc from token t to token s, with a dot at s: above the tokens for layer 1, below them for layer 2. */
  function arc(pen, layer, head, t, s, weight, strong) {
    const way = layer ? 1 : -1, y = ARCS + (layer ? BOX : 0) + 4 * way, shift = ((head + 0.5) / heads - 0.5) * Math.min(16, 0.6 * across);
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
    found.looked.forEach((rows, layer) => rows.forEach((shares, head) => {
      if (!on(layer, head)) return;
      // the second layer reads what the first one has put at the token that it looks at
      const path = layer ? [focus] : [focus, ...found.looked[1].flatMap((all, i) => (on(1, i) ? [strongest(all[focus])] : []))];
      shares.forEach((all, t) => all.forEach((weight, s) => weight >= LEAST && !path.includes(t) && arc(pen, layer, head, t, s, weight, false)));
      path.forEach((t) => shares[t].forEach((weight, s) => weight >= LEAST && arc(pen, layer, head, t, s, weight, true)));
    }));
  }

  function draw(state, hovered) {
    const T = text.tokens.length, places = T + answers.length, focus = hovered >= 0 && hovered < T ? hovered : place(state);
    picture.resize(2 * ARCS + BOX, places * NARROWEST);
    const { pen, width } = picture.begin();
    across = Math.min(WIDEST, width / Math.max(1, places));
    left = (width - across * places) / 2;
    slots = text.tokens.map((_, t) => t + answers.filter((one) => one.t < t).length);
    if (found) drawArcs(pen, focus);
    pen.textAlign = "center";
    const box = (slot, symbol, bold, edge, ink) => {
      Object.assign(pen, { strokeStyle: edge, fillStyle: ink, lineWidth: bold ? 2 : 1, font: `${bold ? 700 : 400} 17px ui-monospace, monospace` });
      pen.strokeRect(left + slot * across + 1.5, ARCS + 2, across - 3, BOX - 4);
      pen.fillText(symbol, left + (slot + 0.5) * across, ARCS + BOX / 2 + 1);
    };
    text.tokens.forEach((token, t) => box(slots[t], token, t === focus && found, t === focus && found ? page.ink : page.faint, page.ink));
    const answer = page.dark ? "#7cc4ff" : "#0063a6";
    for (const { t, symbol, right, source } of answers) {
      box(slots[t] + 1, symbol, true, answer, answer);
      pen.font = "12px system-ui, sans-serif";
      pen.fillText(source < 0 ? "?" : right ? "✓" : "✗", left + (slots[t] + 1.5) * across, ARCS - 9);
    }
  }

  /** The head of a layer, among those that are on, with the largest mean weight from some tokens to others. */
  function best(layer, links) {
    const means = found.looked[layer].map((rows, head) =>
      on(layer, head) ? links.reduce((sum, [t, s]) => sum + rows[t][s], 0) / links.length : -1);
    const head = strongest(means);
    return means[head] < 0 ? null : [named([layer, head]), percent(means[head])];
  }

  function steps() {
    const match = best(0, text.pairs.map((t) => [t, t - 1]));
    const links = answers.filter(({ source }) => source >= 0).map(({ t, source }) => [t, source]);
    const copy = links.length ? best(1, links) : null;
    return [
      match ? `Match: ${match[0]} gives ${match[1]} of a digit's attention to its letter.` : "Layer 1 is off: no digit knows its letter.",
      copy ? `Copy: ${copy[0]} gives ${copy[1]} of the question's attention to the right digit.` : !links.length ? "" : "Layer 2 is off: nothing is copied.",
    ].filter(Boolean);
  }

  function answered() {
    return text.questions.map((t) => {
      const source = text.pairs.find((s) => text.tokens[s - 1] === text.tokens[t - 1]) ?? -1;
      const shares = softmax(row(found.logits, t)), best = strongest(shares);
      return { t, source, symbol: symbols[best], share: shares[best], right: source >= 0 && text.tokens[source] === symbols[best] };
    });
  }

  return (state) => {
    text = parse(state.text, symbols);
    found = text.problem ? null : read(model, text.tokens.map((token) => symbols.indexOf(token)), state.off);
    answers = found ? answered() : [];
    buttons.flat().forEach((element, i) => {
      const isOn = on(Math.floor(i / heads), i % heads);
      element.setAttribute("aria-pressed", String(isOn));
      element.style.textDecoration = isOn ? "" : "line-through";
    });
    draw(state, under);
    const said = answers.map(({ t, symbol, share, right, source }) =>
      `${text.tokens[t - 1]}? is ${symbol} (${percent(share)} sure${right || source < 0 ? "" : `; right is ${text.tokens[source]}`})`);
    const sentence = text.problem || [`The model says: ${said.join(", ")}.`, ...oddities(text), ...steps()].join(" ");
    picture.describe(`${sentence} Left and right choose the token whose arcs are strong.`);
    return sentence;
  };
}
