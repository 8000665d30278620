// Look-up: pairs such as a1 b7 c3 and a question b?; a trained Transformer answers, and arcs show where its heads look.
// Olsson et al. (2022), In-context Learning and Induction Heads.

import { disc, SERIES } from "./chart.js";
import { load, plant, read } from "./network.js";
import { arrows, canvas, make, percent, textInput } from "./page.js";
import { softmax } from "./tensor.js";

const ARCS = 100, BOX = 32, NARROWEST = 17, WIDEST = 44; // pixels: the arcs of a layer; a token, and its least and largest width
const LEAST = 0.04; // the smallest weight that is drawn
const COLOURS = [0, 1, 2, 4].map((i) => SERIES[i]); // of a layer's heads
const STEPS = ["Layer 1, bind: with head 2, a digit looks at its letter", "Layer 2, find: with head 2, a question looks at the right digit"];
const EXAMPLE = "a letter from a to j and a digit, then a question, such as a1 b7 c3 b?";
const strongest = (shares) => shares.indexOf(Math.max(...shares));

/**
 * The logits after each token, and where the heads look, by layer, token and head. A head's name is its layer and number,
 * such as "1.0"; those in `off` add nothing.
 */
export function look(model, tokens, off = []) {
  const tree = plant(tokens), attentions = model.layers.filter(({ kind }) => kind === "attention").map(({ name }) => name);
  const names = off.map((name) => name.split(".")).map(([layer, head]) => `${attentions[layer]}.${head}`);
  const logits = read(model, tree, [...tokens.keys()], { off: names });
  return { logits, looked: attentions.map((name) => tree.rows[`${name}.looked`]) };
}

/** The tokens of a text, the places of its digits and of its question marks, and what is wrong with it, if anything. */
function parse(text) {
  const whole = text.toLowerCase().replace(/[\s,;]/g, "");
  const [, pairs, asked, rest] = whole.match(/^((?:[a-j]\d)*)((?:[a-j]\?)*)(.*)$/);
  const problem =
    rest ? `The model cannot read “${rest}”. It reads pairs of ${EXAMPLE}`
    : !pairs ? `Type pairs of ${EXAMPLE}`
    : !asked ? `Now ask for one of the letters, such as ${pairs[0]}?`
    : "";
  const places = (symbols, from) => [...symbols].map((_, i) => from + i).filter((t) => t % 2);
  return { tokens: [...whole], pairs: places(pairs, 0), questions: places(asked, pairs.length), problem };
}

export function show(page) {
  const { symbols, network } = page.data, model = load(network, page.weights);
  const layers = model.layers.filter(({ kind }) => kind === "attention").map(({ heads }, layer) =>
    Array.from({ length: heads }, (_, head) => ({ layer, head, name: `${layer}.${head}` })));
  let text, found, answers, cells, slots, left = 0, across = 1;

  const line = textInput(page, "text", { label: "pairs and questions", maxLength: 90 });
  line.addEventListener("input", () => page.set({ chosen: 0 }));
  /** A button for each head of a layer, which switches it off. */
  function bar(layer) {
    const buttons = layers[layer].map((one) => {
      const dot = make("span", { textContent: "● ", style: `color: ${COLOURS[one.head]}` });
      const facts = { ariaLabel: `layer ${layer + 1}, head ${one.head + 1}`, onclick: () => toggle(one.name) };
      return (one.button = make("button", facts, dot, `head ${one.head + 1}`));
    });
    page.show(make("div", { className: "row" }, STEPS[layer], ...buttons));
  }
  const isOff = (name) => page.state.off.includes(name), on = (layer) => layers[layer].filter(({ name }) => !isOff(name));
  const others = (name) => page.state.off.filter((one) => one !== name);
  const toggle = (name) => page.set({ off: isOff(name) ? others(name) : [...page.state.off, name] });

  bar(0);
  const picture = canvas(page, {
    label: "tokens, and arcs to where heads look: left and right choose the token whose arcs are strong",
    hint: "Click a token: its arcs become strong.",
    point: (x) => (found && at(x) >= 0 ? told(at(x)) : ""),
    grab: (x) => (at(x) >= 0 ? { chosen: at(x) + 1 } : undefined),
    key: (name) => arrows(name, ["chosen", chosen() + 1, 1, text.tokens.length]),
  });
  picture.element.style.touchAction = "manipulation"; // a finger moves tokens that are wider than the page
  bar(1);
  page.longest = 2300;

  /** The token at a place; an answer belongs to its question. */
  const at = (x) => cells[Math.floor((x - left) / across)]?.t ?? -1;
  /** The token whose arcs are drawn strongly: the one that was chosen, or else the last question. */
  const chosen = () => ((page.state.chosen <= text.tokens.length && page.state.chosen) || text.tokens.length) - 1;
  const shares = ({ layer, head }, t) => found.looked[layer][t][head];

  /** Where the heads look from a token, in words. */
  function told(t) {
    const looks = [0, 1].map((layer) => {
      const each = on(layer).map((one) => {
        const s = strongest(shares(one, t));
        return `head ${one.head + 1} at “${text.tokens[s]}” (${percent(shares(one, t)[s])})`;
      });
      return `layer ${layer + 1} ${each.length ? `looks most with ${each.join(" and ")}` : "is off"}`;
    });
    return `Token ${t + 1}, “${text.tokens[t]}”: ${looks.join("; ")}.`;
  }

  /** An arc from token t to token s, with a dot at s: above the tokens for layer 1, below them for layer 2. */
  function arc(pen, { layer, head }, t, s, weight, strong) {
    const way = layer ? 1 : -1, y = ARCS + (layer ? BOX : 0) + 4 * way, shift = (head - 0.5) * Math.min(8, 0.3 * across);
    const [from, to] = [t, s].map((token) => left + (slots[token] + 0.5) * across + shift);
    const high = y + way * Math.min(1.3 * ARCS - 16, 14 + 0.55 * (from - to));
    Object.assign(pen, { strokeStyle: COLOURS[head], fillStyle: COLOURS[head], lineWidth: 1 + 4 * weight });
    pen.globalAlpha = strong ? 0.4 + 0.6 * weight : 0.25 * weight;
    pen.beginPath();
    if (t === s) pen.arc(from, y + 7 * way, 6, 0, 2 * Math.PI);
    else {
      pen.moveTo(from, y);
      pen.bezierCurveTo(from, high, to, high, to, y);
    }
    pen.stroke();
    disc(pen, to, y, 2.5 + 2 * weight);
    pen.globalAlpha = 1;
  }

  function drawArcs(pen, focus) {
    // the second layer reads what the first one has put at the token that it looks at
    const paths = [[focus, ...on(1).map((one) => strongest(shares(one, focus)))], [focus]];
    for (const one of [...on(0), ...on(1)])
      text.tokens.forEach((_, t) => {
        const isStrong = paths[one.layer].includes(t);
        shares(one, t).forEach((weight, s) => weight >= LEAST && arc(pen, one, t, s, weight, isStrong));
      });
  }

  /** The box of a token, or of an answer, which has a sign above it. */
  function drawCell(pen, { symbol, sign }, x, isFocus) {
    const [good, bad] = page.dark ? ["#7cc4ff", "#ff9d80"] : ["#0063a6", "#b3400c"], isStrong = sign || isFocus;
    pen.fillStyle = !sign ? page.ink : sign === "✗" ? bad : good;
    pen.strokeStyle = isStrong ? pen.fillStyle : page.faint;
    pen.lineWidth = isStrong ? 2 : 1;
    pen.strokeRect(x + 1.5, ARCS + 2, across - 3, BOX - 4);
    pen.font = `${isStrong ? 700 : 400} 17px ui-monospace, monospace`;
    pen.fillText(symbol, x + 0.5 * across, ARCS + BOX / 2 + 1);
    pen.font = "12px system-ui, sans-serif";
    if (sign) pen.fillText(sign, x + 0.5 * across, ARCS - 9);
  }

  function draw() {
    const { pen, width } = picture.begin(2 * ARCS + BOX, cells.length * NARROWEST);
    across = Math.min(WIDEST, width / Math.max(1, cells.length));
    left = (width - across * cells.length) / 2;
    if (found) drawArcs(pen, chosen());
    pen.textAlign = "center";
    cells.forEach((cell, i) => drawCell(pen, cell, left + i * across, cell.t === chosen() && !cell.sign));
  }

  /** The answer to the question at a place, with a sign: right, wrong, or a guess. */
  function answer(t) {
    const letter = text.tokens[t - 1], pairs = text.pairs.filter((s) => text.tokens[s - 1] === letter);
    const right = [...new Set(pairs.map((s) => text.tokens[s]))];
    const likely = softmax(found.logits[t]), i = strongest(likely), symbol = symbols[i];
    const sign = !right.length ? "?" : right.includes(symbol) ? "✓" : "✗";
    const correction = right.join() === symbol ? "" : `; right is ${right.join(" or ")}`;
    const besides = right.length ? correction : "; a guess, because no pair has this letter";
    return { t, symbol, sign, said: `${letter}? is ${symbol} (${percent(likely[i])} sure${besides})` };
  }

  return ({ text: written, off }) => {
    text = parse(written);
    found = text.problem ? null : look(model, text.tokens.map((token) => symbols.indexOf(token)), off);
    answers = found ? text.questions.map(answer) : [];
    cells = text.tokens.flatMap((symbol, t) => [{ t, symbol }, ...answers.filter((one) => one.t === t)]);
    slots = text.tokens.map((_, t) => cells.findIndex((cell) => cell.t === t));
    for (const { button, name } of layers.flat()) {
      button.ariaPressed = !isOff(name);
      button.style.textDecoration = isOff(name) ? "line-through" : "";
    }
    draw();
    const count = text.pairs.length, besides = `, which has learnt from 2 to 8 pairs (this text has ${count}),`;
    const who = `The model${count < 2 || count > 8 ? besides : ""} says:`;
    return text.problem || `${who} ${answers.map(({ said }) => said).join(", ")}. ${told(chosen())}`;
  };
}
