// RNN, Transformer and R-Transformer, one position at a time, as `step` of rtx.models. network.py lists a model's layers.
// A state is never changed: an explorer can keep the state of every position, and go on from any of them.

import { add, addTo, attend, CELLS, layerNorm, linear, matrix, readTensors, relu, row } from "./tensor.js";

/** The model that `described` of network.py wrote, with its weights, a DataView of a safetensors file. */
export function load(network, bytes) {
  const weights = readTensors(bytes), bias = weights["head.bias"] ?? weights["decoder.bias"];
  const layers = network.layers.map((layer) => ({ ...layer, of: (name) => weights[`${layer.prefix}${name}`] }));
  const head = weights["head.weight"] ?? weights["decoder.weight"] ?? weights["embedding.weight"]; // the last if tied
  return { ...network, layers, weights, head: (x) => linear(x, head, bias).values };
}

/**
 * Read one position: a row of numbers, or the number of a symbol. Returns the logits of the next one, and the state.
 * A layer whose name is in `off` adds nothing. If nobody asks for the logits, only the state is computed, which is less
 * than half of the work: behind the last layer that has a state, nothing is.
 */
export function step(model, read, { place = 0, parts = [] } = {}, off = [], asked = true) {
  let x = embedded(model, read);
  if (model.positions !== "none") x = add(x, positions(model, place));
  const last = model.layers.findLastIndex(({ kind }) => kind !== "feed-forward");
  const after = model.layers.map((layer, i) => {
    if (off.includes(layer.name) || (!asked && i > last)) return parts[i];
    const [y, part] = KINDS[layer.kind](layer, layer.norm === "pre" ? normed(model, layer, x) : x, parts[i], asked || i < last);
    x = layer.norm ? addTo(y, x) : y; // y is of this step alone; the state of an RNN is not added to
    if (layer.norm === "post") x = normed(model, layer, x);
    return part;
  });
  return { logits: asked && model.head(x), state: { place: place + 1, parts: after } };
}

const normed = ({ weights }, { name }, x) => layerNorm(x, weights[`${name}.norm.weight`], weights[`${name}.norm.bias`]);

/** The vector of a symbol, or of a row of numbers, most of which are 0 in a piano roll. */
function embedded({ weights }, read) {
  const { shape, values } = weights["embedding.weight"], bias = weights["embedding.bias"];
  if (typeof read === "number") return matrix(1, shape[1], values.slice(read * shape[1], (read + 1) * shape[1]));
  const x = matrix(1, shape[0], Float64Array.from(bias.values));
  read.forEach((value, key) => {
    if (value) for (let k = 0; k < shape[0]; k++) x.values[k] += value * values[k * shape[1] + key];
  });
  return x;
}

/** What is added to the input of a position: sines and cosines, a row of a table, or nothing. */
function positions({ positions: kind, weights, width }, place) {
  if (kind === "learned") return matrix(1, width, row({ columns: width, values: weights["backbone.table"].values }, place));
  const wave = (k) => (k % 2 ? Math.cos : Math.sin)(place / 10_000 ** ((k - (k % 2)) / width));
  return matrix(1, width, Float64Array.from({ length: width }, (_, k) => (kind === "sinusoidal" ? wave(k) : 0)));
}

/** Put a row below a matrix. */
function appended(above, { columns, values }) {
  const both = matrix((above?.rows ?? 0) + 1, columns);
  both.values.set(above?.values ?? []);
  both.values.set(values, both.values.length - columns);
  return both;
}

// What a layer returns for x, and its part of the state.
const KINDS = {
  rnn({ cell, of, layer }, x, h) {
    const [read, keep] = ["ih", "hh"].map((part) => [of(`weight_${part}_l${layer}`), of(`bias_${part}_l${layer}`)]);
    const D = keep[0].shape[1], after = matrix(1, D, Float64Array.from(h?.values ?? new Float64Array(D)));
    CELLS[cell](linear(x, ...read).values, linear(after, ...keep).values, after.values);
    return [after, after];
  },

  /** Wang et al. (2019), Eq. 2-3. The state has the h of the windows that go on, the newest first. */
  local({ cell, of, window }, x, going) {
    const D = x.columns, bias = of("bias_ih_l0").values;
    const onwards = (states, read) => {
      const kept = linear(states, of("weight_hh_l0"), of("bias_hh_l0"));
      for (let i = 0; i < states.rows; i++) CELLS[cell](read, row(kept, i), row(states, i));
      return states;
    };
    const begun = ({ rows, values }) => {
      const states = matrix(rows + 1, D);
      states.values.set(values, D); // before them a new window, whose h is zero
      return states;
    };
    let states = going ?? matrix(0, D);
    while (states.rows < window - 1) states = onwards(begun(states), bias); // before the beginning it reads zeros
    states = onwards(begun(states), linear(x, of("weight_ih_l0"), of("bias_ih_l0")).values);
    return [matrix(1, D, row(states, window - 1)), matrix(window - 1, D, states.values.subarray(0, (window - 1) * D))];
  },

  /** Eq. 4-6. With tables, the positions of Shaw et al. (2018), Eq. 3-4. The state has the keys and values so far. */
  attention({ heads, of }, x, past, asked) {
    const [key, value] = ["key", "value"].map((name) => linear(x, of(`${name}.weight`)));
    const keys = appended(past?.keys, key), values = appended(past?.values, value);
    if (!asked) return [x, { keys, values }];
    const tables = ["key_table", "value_table"].map(of).filter(Boolean);
    const { mixed } = attend(linear(x, of("query.weight")), keys, values, heads, { tables });
    return [linear(mixed, of("output.weight")), { keys, values }];
  },

  /** Eq. 7. */
  "feed-forward": ({ of }, x) =>
    [linear(relu(linear(x, of("expand.weight"), of("expand.bias"))), of("contract.weight"), of("contract.bias"))],
};
