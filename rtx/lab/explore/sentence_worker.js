// What the explorer of a sentence computes, beside the page: three models read a text, and read it again with one letter
// changed after the other.

import { load, step } from "./network.js";
import { softmax } from "./tensor.js";

const SLICE = 25; // milliseconds of work after which a newer text is looked for

let models = [], newest = 0;

/** Read symbols from a state on; returns the state behind each of them, with the logits behind the last. */
function read(model, symbols, from) {
  let state = from;
  return symbols.map((symbol, i) => {
    const found = step(model, symbol, state, [], i === symbols.length - 1);
    state = found.state;
    return found;
  });
}

/** Half the sum of differences: the part of the probability that moves from some letters to others. */
const distance = (p, q) => p.reduce((sum, value, i) => sum + Math.abs(value - q[i]), 0) / 2;

/** What a model says of a text: the probabilities of the next letter, and how much each letter changes them. */
async function look(model, { id, symbols, others }, tell) {
  // a text that goes on where the last one ended is read from there, with each of its letters changed, too
  const { symbols: before, states, changed } = model.kept ?? { symbols: [], states: [], changed: [] };
  const shared = before.every((symbol, i) => symbol === symbols[i]) ? before.length : 0;
  const kept = { symbols, states: states.slice(0, shared), changed: changed.slice(0, shared) };
  kept.states.push(...read(model, symbols.slice(shared), kept.states.at(-1)?.state));
  const next = softmax(kept.states.at(-1).logits);
  tell({ next: Array.from(next) });
  let begun = performance.now();
  for (let i = 0; i < symbols.length; i++) {
    const rest = i < shared ? symbols.slice(shared) : [others[i], ...symbols.slice(i + 1)];
    const from = i < shared ? kept.changed[i].state : kept.states[i - 1]?.state;
    if (rest.length) kept.changed[i] = read(model, rest, from).at(-1);
    if (performance.now() - begun < SLICE) continue;
    await new Promise((go) => setTimeout(go));
    if (id !== newest) return false;
    begun = performance.now();
  }
  model.kept = kept;
  tell({ next: Array.from(next), changes: kept.changed.map(({ logits }) => distance(next, softmax(logits))) });
  return true;
}

/** A first message brings the models, every other one a text; the answers are sent with `post`. */
export async function answer({ data }, post) {
  if (data.models) {
    models = data.models.map(({ network, bytes }) => load(network, bytes));
    return;
  }
  newest = data.id;
  for (const [place, model] of models.entries())
    if (!(await look(model, data, (found) => post({ id: data.id, place, ...found })))) return;
}
