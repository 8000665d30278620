// The arithmetic of small models: numbers in rows, and the layers of rtx.nn on one sequence. A sequence of T positions
// with D features is a matrix { rows: T, columns: D, values }, values row after row, in 64 bits.

export const matrix = (rows, columns, values = new Float64Array(rows * columns)) => ({ rows, columns, values });

/** A view of one row. */
export const row = ({ columns, values }, i) => values.subarray(i * columns, (i + 1) * columns);

/** The tensors of a safetensors file, by name, each with its shape and its values. `bytes` is a DataView. */
export function readTensors(bytes) {
  const length = Number(bytes.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes.buffer, bytes.byteOffset + 8, length)));
  const found = {};
  delete header.__metadata__;
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(header)) {
    const size = { F16: 2, F32: 4 }[dtype], at = 8 + length + from;
    const number = { F16: (place) => half(bytes.getUint16(place, true)), F32: (place) => bytes.getFloat32(place, true) }[dtype];
    found[name] = { shape, values: Float64Array.from({ length: (to - from) / size }, (_, i) => number(at + i * size)) };
  }
  return found;
}

/** A number of 16 bits, IEEE 754. */
function half(bits) {
  const sign = bits >> 15 ? -1 : 1, power = (bits >> 10) & 31, rest = bits & 1023;
  return power === 0 ? sign * rest * 2 ** -24 : sign * (1024 + rest) * 2 ** (power - 25);
}

/** x Wᵀ + b, as nn.Linear: the weight has a row for each output. */
export function linear(x, weight, bias) {
  const [outputs, inputs] = weight.shape, y = matrix(x.rows, outputs), from = x.values, times = weight.values, to = y.values;
  const fours = outputs & ~3; // four sums at once: a processor need not wait for one before it adds to the next
  for (let t = 0; t < x.rows; t++) {
    const at = t * inputs, place = t * outputs;
    for (let j = 0; j < fours; j += 4) {
      const a = j * inputs, b = a + inputs, c = b + inputs, d = c + inputs;
      let one = 0, two = 0, three = 0, four = 0;
      for (let k = 0; k < inputs; k++) {
        const value = from[at + k];
        one += value * times[a + k];
        two += value * times[b + k];
        three += value * times[c + k];
        four += value * times[d + k];
      }
      to[place + j] = one;
      to[place + j + 1] = two;
      to[place + j + 2] = three;
      to[place + j + 3] = four;
    }
    for (let j = fours; j < outputs; j++)
      for (let k = 0; k < inputs; k++) to[place + j] += from[at + k] * times[j * inputs + k];
    if (bias) for (let j = 0; j < outputs; j++) to[place + j] += bias.values[j];
  }
  return y;
}

export const add = (x, y) => matrix(x.rows, x.columns, x.values.map((value, i) => value + y.values[i]));

/** Add y to x in place: for an x that nobody else has, which saves much of the time. */
export function addTo(x, { values }) {
  for (let i = 0; i < values.length; i++) x.values[i] += values[i];
  return x;
}

/** The positive part, in place. */
export function relu(x) {
  for (let i = 0; i < x.values.length; i++) if (x.values[i] < 0) x.values[i] = 0;
  return x;
}

/** Each row with mean 0 and variance 1, then scaled and shifted, as nn.LayerNorm. */
export function layerNorm(x, weight, bias, epsilon = 1e-5) {
  const y = matrix(x.rows, x.columns);
  for (let t = 0; t < x.rows; t++) {
    const at = t * x.columns, end = at + x.columns;
    let mean = 0, variance = 0;
    for (let k = at; k < end; k++) mean += x.values[k] / x.columns;
    for (let k = at; k < end; k++) variance += (x.values[k] - mean) ** 2 / x.columns;
    const scale = 1 / Math.sqrt(variance + epsilon);
    for (let k = at; k < end; k++) y.values[k] = (x.values[k] - mean) * scale * weight.values[k - at] + (bias ? bias.values[k - at] : 0);
  }
  return y;
}

/** Probabilities from scores, in one row. */
export function softmax(scores) {
  const powers = scores.slice();
  let highest = -Infinity, sum = 0;
  for (const score of scores) highest = Math.max(highest, score);
  for (let i = 0; i < powers.length; i++) sum += powers[i] = Math.exp(powers[i] - highest);
  for (let i = 0; i < powers.length; i++) powers[i] /= sum;
  return powers;
}

const sigmoid = (value) => 1 / (1 + Math.exp(-value));

/** One step of a cell from a state h and what it reads, already multiplied by its weights; writes the new state. */
export const CELLS = {
  rnn: (read, kept, h) => h.forEach((_, k) => (h[k] = Math.tanh(read[k] + kept[k]))),
  gru(read, kept, h) {
    const D = h.length;
    for (let k = 0; k < D; k++) {
      const r = sigmoid(read[k] + kept[k]), z = sigmoid(read[D + k] + kept[D + k]);
      const n = Math.tanh(read[2 * D + k] + r * kept[2 * D + k]);
      h[k] = (1 - z) * n + z * h[k];
    }
  },
};

/**
 * A recurrent layer as nn.RNN or nn.GRU: its parameters under `prefix` in `weights`. With `window`, a LocalRNN: each
 * position starts from nothing, `window` positions back, and reads zeros before the beginning (Wang et al. 2019, Eq. 2).
 */
export function recurrent(x, weights, prefix, { cell = "gru", window = 0, layer = 0 } = {}) {
  const [read, keep] = ["ih", "hh"].map((part) => [weights[`${prefix}weight_${part}_l${layer}`], weights[`${prefix}bias_${part}_l${layer}`]]);
  const D = keep[0].shape[1], inputs = linear(x, ...read), padding = read[1]?.values ?? new Float64Array(inputs.columns);
  const y = matrix(x.rows, D), h = matrix(1, D), step = CELLS[cell];
  for (let t = 0; t < x.rows; t++) {
    if (window) h.values.fill(0);
    for (let s = window ? t - window + 1 : t; s <= t; s++) step(s < 0 ? padding : row(inputs, s), linear(h, ...keep).values, h.values);
    row(y, t).set(h.values);
  }
  return y;
}

/**
 * What attention returns before its last projection, and its weights: for each head and query, a row of weights for
 * that position and all before it. The queries are those of the last positions. `off(head)` says that a head returns
 * nothing. `tables`, of keys and values, has a vector for each distance, the farthest first (Shaw et al. 2018, Eq. 3-4).
 */
export function attend(queries, keys, values, heads, { off = () => false, bias = () => 0, tables = [] } = {}) {
  const T = queries.rows, D = queries.columns, width = D / heads, mixed = matrix(T, D), looked = [];
  const before = keys.rows - T, [near, given] = tables.map(({ values }) => values), farthest = near && near.length / width - 1;
  const [q, k, v, to] = [queries, keys, values, mixed].map((one) => one.values);
  for (let head = 0; head < heads; head++) {
    const rows = [];
    for (let t = 0; t < T; t++) {
      const scores = new Float64Array(before + t + 1);
      const asks = t * D + head * width, last = scores.length - 1;
      for (let s = 0; s <= last; s++) {
        const at = s * D + head * width;
        let sum = 0;
        for (let i = 0; i < width; i++) sum += q[asks + i] * k[at + i];
        if (near) for (let i = 0, row = Math.max(0, farthest - last + s) * width; i < width; i++) sum += q[asks + i] * near[row + i];
        scores[s] = sum / Math.sqrt(width) + bias(head, t, s);
      }
      const shares = softmax(scores);
      rows.push(shares);
      if (off(head)) continue;
      for (let s = 0; s <= last; s++) {
        const at = s * D + head * width, share = shares[s];
        for (let i = 0; i < width; i++) to[asks + i] += share * v[at + i];
        if (given) for (let i = 0, row = Math.max(0, farthest - last + s) * width; i < width; i++) to[asks + i] += share * given[row + i];
      }
    }
    looked.push(rows);
  }
  return { mixed, looked };
}
