// RNN, Transformer and R-Transformer of rtx.models, read layer by layer. What they read is a tree: a node has an input,
// a parent that is read before it, and in each layer a row of numbers, which is kept. A text is a chain of nodes. A text
// with one letter changed is a branch, and shares with the text all rows that the change cannot reach.

import { add, attend, CELLS, layerNorm, linear, readTensors, relu } from "./tensor.js";

/** The model that `described` of network.py wrote, with its weights, a DataView of a safetensors file. */
export function load(network, bytes) {
  const weights = readTensors(bytes), bias = weights["head.bias"] ?? weights["decoder.bias"];
  const layers = network.layers.map((layer) => ({ ...layer, of: (name) => weights[`${layer.prefix}${name}`] }));
  const head = weights["head.weight"] ?? weights["decoder.weight"] ?? weights["embedding.weight"]; // the last if tied
  return { ...network, layers, weights, head: (x) => linear(x, head, bias) };
}

/**
 * A tree with a chain of nodes. A node's number is its place in `inputs`, which has the numbers of symbols or rows of
 * numbers; its parent's number is in `parents`, -1 for a first one. `twins` may have for a node another one at the same
 * depth, read before, whose rows it takes where nothing can be different.
 */
export const plant = (inputs = []) =>
  ({ inputs: [...inputs], parents: inputs.map((_, t) => t - 1), twins: [], depths: [], rows: {} });

/** Add a node; returns its number. */
export function grow(tree, input, parent = tree.inputs.length - 1, twin = undefined) {
  tree.parents.push(parent);
  tree.twins[tree.inputs.length] = twin;
  return tree.inputs.push(input) - 1;
}

/** The last nodes on the way to a node, at most `count`, itself the last. */
function way(tree, node, count = Infinity) {
  const found = [];
  for (let one = node; one >= 0 && found.length < count; one = tree.parents[one]) found.push(one);
  return found.reverse();
}

/**
 * Read nodes of a tree, parents first; returns the logits of what follows those that are `asked` for. A layer or head
 * whose name is in `off` adds nothing. Of the other nodes only what later ones need is computed.
 */
export function read(model, tree, nodes, { off = [], asked = nodes } = {}) {
  for (const node of nodes) tree.depths[node] = (tree.depths[tree.parents[node]] ?? -1) + 1;
  tree.rows.input = tree.inputs;
  fill(tree, "x", "input", nodes, (input, node) => embedded(model, input, tree.depths[node]));
  const last = model.layers.findLastIndex(({ kind }) => kind !== "feed-forward");
  let x = "x", now = nodes;
  model.layers.forEach((layer, i) => {
    if (off.includes(layer.name)) return;
    const { name, norm, kind } = layer, given = norm === "pre" ? `${name}.normed` : x;
    const normed = (one) => layerNorm(one, model.weights[`${name}.norm.weight`], model.weights[`${name}.norm.bias`]);
    if (norm === "pre") fill(tree, given, x, now, normed);
    for (const [to, ...weights] of KEPT[kind]?.(layer) ?? []) fill(tree, `${name}.${to}`, given, now, (one) => linear(one, ...weights));
    if (i >= last && kind !== "rnn") now = asked;
    const sees = { local: layer.window, convolution: layer.window, "feed-forward": 1 }[kind] ?? Infinity;
    fill(tree, name, given, now, (one, node) => {
      const y = MIXES[kind](layer, tree, node, one, off, given), sum = norm ? add(y, tree.rows[x][node]) : y;
      return norm === "post" ? normed(sum) : sum;
    }, sees);
    x = name;
  });
  return asked.map((node) => model.head(tree.rows[x][node]));
}

/** Compute the rows `to` of nodes from their rows `from`. Where the last `sees` of these are its twin's, a node takes the twin's. */
function fill(tree, to, from, nodes, compute, sees = 1) {
  const rows = (tree.rows[to] ??= []), given = tree.rows[from], { parents, twins } = tree;
  const isShared = (node, twin, steps) =>
    twin !== undefined && given[node] === given[twin] && (steps === 1 || node < 0 || isShared(parents[node], parents[twin], steps - 1));
  for (const node of nodes) rows[node] = isShared(node, twins[node], sees) ? rows[twins[node]] : compute(given[node], node);
}

/** The vector of a symbol, or of a row of numbers, at a position. */
function embedded({ weights, positions, width }, input, place) {
  const weight = weights["embedding.weight"], table = weights["backbone.table"], from = input * width;
  const isSymbol = typeof input === "number";
  const x = isSymbol ? weight.values.slice(from, from + width) : linear(input, weight, weights["embedding.bias"]);
  const wave = (k) => (k % 2 ? Math.cos : Math.sin)(place / 10_000 ** ((k - (k % 2)) / width));
  if (positions === "learned") return x.map((value, k) => value + table.values[place * width + k]);
  return positions === "sinusoidal" ? x.map((value, k) => value + wave(k)) : x;
}

const cellWeights = ({ of, layer = 0 }, part) => [of(`weight_${part}_l${layer}`), of(`bias_${part}_l${layer}`)];

/** What a layer keeps of each node for later ones: a name, a weight, perhaps a bias. */
const KEPT = {
  rnn: (layer) => [["read", ...cellWeights(layer, "ih")]],
  local: (layer) => [["read", ...cellWeights(layer, "ih")]],
  attention: ({ of }) => ["key", "value"].map((name) => [name, of(`${name}.weight`)]),
};

/** What a layer returns for a node; `x` is what it is given, a row of `given`. */
const MIXES = {
  rnn(layer, { rows, parents }, node) {
    const keep = cellWeights(layer, "hh"), h = rows[layer.name][parents[node]]?.slice() ?? new Float64Array(keep[0].shape[1]);
    CELLS[layer.cell](rows[`${layer.name}.read`][node], linear(h, ...keep), h);
    return h;
  },

  /** Wang et al. (2019), Eq. 2-3: each window starts from nothing, and reads zeros before the beginning. */
  local(layer, tree, node) {
    const [, padding] = cellWeights(layer, "ih"), keep = cellWeights(layer, "hh"), h = new Float64Array(keep[0].shape[1]);
    const reads = way(tree, node, layer.window).map((one) => tree.rows[`${layer.name}.read`][one]);
    for (let back = layer.window; back > 0; back--) CELLS[layer.cell](reads.at(-back) ?? padding.values, linear(h, ...keep), h);
    return h;
  },

  /** tanh of a causal convolution, in the place of a LocalRNN: it reads zeros before the beginning. */
  convolution({ window, of }, tree, node, x, off, given) {
    const reads = way(tree, node, window).map((one) => tree.rows[given][one]), taps = new Float64Array(x.length * window);
    reads.forEach((one, i) => one.forEach((value, k) => (taps[k * window + window - reads.length + i] = value)));
    const { shape: [outputs], values } = of("direction"); // for each output its inputs, for each input the oldest first
    return linear(taps, { shape: [outputs, taps.length], values }, of("bias")).map(Math.tanh);
  },

  /** Eq. 4-6. With tables, the positions of Shaw et al. (2018), Eq. 3-4. Keeps where each head looks. */
  attention({ name, heads, of }, tree, node, x, off) {
    const before = way(tree, node), tables = ["key_table", "value_table"].map(of).filter(Boolean);
    const [keys, values] = ["key", "value"].map((kind) => before.map((one) => tree.rows[`${name}.${kind}`][one]));
    const options = { tables, off: (head) => off.includes(`${name}.${head}`) };
    const { mixed, looked } = attend(linear(x, of("query.weight")), keys, values, heads, options);
    (tree.rows[`${name}.looked`] ??= [])[node] = looked;
    return linear(mixed, of("output.weight"));
  },

  /** Eq. 7. */
  "feed-forward": ({ of }, tree, node, x) =>
    linear(relu(linear(x, of("expand.weight"), of("expand.bias"))), of("contract.weight"), of("contract.bias")),
};
