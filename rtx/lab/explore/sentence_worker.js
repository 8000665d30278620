// What the explorer of a sentence computes, beside the page: a model reads a text, and reads it again with one letter
// changed after the other.

import { grow, load, plant, read } from "./network.js";
import { softmax } from "./tensor.js";

let model = null, newest = 0;

/** Half the sum of differences: the part of the probability that moves from some letters to others. */
const distance = (p, q) => p.reduce((sum, value, i) => sum + Math.abs(value - q[i]), 0) / 2;

/** What a model says of a text: the probabilities of the next letter, then how much each letter changes them. */
export function look(model, { symbols, others }, tell) {
  const tree = plant(symbols), T = symbols.length;
  const next = softmax(read(model, tree, [...symbols.keys()], { asked: [T - 1] })[0]);
  tell({ next });
  const ends = others.map((other, i) => {
    let node = grow(tree, other, i - 1, i);
    for (let t = i + 1; t < T; t++) node = grow(tree, symbols[t], node, t);
    return node;
  });
  const logits = read(model, tree, [...tree.inputs.keys()].slice(T), { asked: ends });
  tell({ next, changes: ends.map((_, i) => distance(next, softmax(logits[i]))) });
}

/** The symbols that a model writes after a text, never an unknown one. The best of noisy logits is a draw (Gumbel). */
function write(model, { symbols, temperature, count, unknown }) {
  const tree = plant(symbols);
  let logits = read(model, tree, [...symbols.keys()], { asked: [symbols.length - 1] });
  for (let i = 0; i < count; i++) {
    const noisy = logits[0].map((logit) => logit - temperature * Math.log(-Math.log(Math.random())));
    noisy[unknown] = -Infinity;
    logits = read(model, tree, [grow(tree, noisy.indexOf(Math.max(...noisy)))]);
  }
  return tree.inputs.slice(symbols.length);
}

/** A first message brings the model, another one a text to look at or to write on; the answers are sent with `post`. */
export async function answer({ data }, post) {
  if (data.network) return void (model = load(data.network, data.weights));
  newest = data.id;
  if (data.count) return post({ id: data.id, written: write(model, data) });
  await new Promise((go) => setTimeout(go)); // a newer text may have come
  if (data.id === newest) look(model, data, (found) => post({ id: data.id, ...found }));
}
