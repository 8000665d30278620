// The arithmetic of small models: vectors of numbers in 64 bits, and the layers of rtx.nn on one vector. A sequence is a
// list of vectors.

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

/** W x + b, as nn.Linear: the weight has a row for each output. */
export function linear(x, { shape: [outputs, inputs], values: times }, bias) {
  const y = new Float64Array(outputs);
  for (let j = 0; j < outputs; j++) {
    let sum = bias ? bias.values[j] : 0, other = 0; // two sums: a processor need not wait for one before it adds to the next
    let a = 0, b = j * inputs;
    for (; a < inputs - 1; a += 2, b += 2) {
      sum += x[a] * times[b];
      other += x[a + 1] * times[b + 1];
    }
    y[j] = sum + other + (inputs % 2 ? x[a] * times[b] : 0);
  }
  return y;
}

export const add = (x, y) => x.map((value, i) => value + y[i]);

export const relu = (x) => x.map((value) => Math.max(0, value));

/** A vector with mean 0 and variance 1, then scaled and shifted, as nn.LayerNorm. */
export function layerNorm(x, weight, bias) {
  let mean = 0, variance = 1e-5 * x.length;
  for (let k = 0; k < x.length; k++) mean += x[k] / x.length;
  for (let k = 0; k < x.length; k++) variance += (x[k] - mean) ** 2;
  const scale = 1 / Math.sqrt(variance / x.length);
  return x.map((value, k) => (value - mean) * scale * weight.values[k] + bias.values[k]);
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

export const sigmoid = (value) => 1 / (1 + Math.exp(-value));

/**
 * One step of a cell from what it reads and its state h, both already multiplied by its weights. It writes the new state
 * into h, and an LSTM's memory into c; returns the gates by name.
 */
export const CELLS = {
  rnn(read, kept, h) {
    h.forEach((_, k) => (h[k] = Math.tanh(read[k] + kept[k])));
    return {};
  },
  gru(read, kept, h) {
    const D = h.length, [r, z, n] = [0, 1, 2].map(() => new Float64Array(D));
    for (let k = 0; k < D; k++) {
      r[k] = sigmoid(read[k] + kept[k]);
      z[k] = sigmoid(read[D + k] + kept[D + k]);
      n[k] = Math.tanh(read[2 * D + k] + r[k] * kept[2 * D + k]);
      h[k] = (1 - z[k]) * n[k] + z[k] * h[k];
    }
    return { "reset r": r, "update z": z, "candidate n": n };
  },
  lstm(read, kept, h, c) {
    const D = h.length, gate = (f, i) => Float64Array.from(h, (_, k) => f(read[i * D + k] + kept[i * D + k]));
    const [i, f, g, o] = [sigmoid, sigmoid, Math.tanh, sigmoid].map(gate);
    h.forEach((_, k) => {
      c[k] = f[k] * c[k] + i[k] * g[k];
      h[k] = o[k] * Math.tanh(c[k]);
    });
    return { "input i": i, "forget f": f, "candidate g": g, "output o": o };
  },
};

/**
 * What attention returns for one query before its last projection, and where each head looks: a weight for each of the
 * rows of keys, the query's own the last. `off(head)` says that a head returns nothing. `tables`, of keys and values, has
 * a vector for each distance, the farthest first (Shaw et al. 2018, Eq. 3-4).
 */
export function attend(query, keys, values, heads, { off = () => false, tables = [] } = {}) {
  const width = query.length / heads, mixed = new Float64Array(query.length), looked = [];
  const [near, given] = [0, 1].map((i) => tables[i]?.values ?? new Float64Array(width));
  const first = near.length - keys.length * width; // where the vector of the first key's distance begins, if no farther one is
  for (let head = 0; head < heads; head++) {
    const from = head * width, scores = new Float64Array(keys.length);
    for (let s = 0; s < keys.length; s++) {
      const key = keys[s], far = Math.max(0, first + s * width);
      let sum = 0;
      for (let i = 0; i < width; i++) sum += query[from + i] * (key[from + i] + near[far + i]);
      scores[s] = sum / Math.sqrt(width);
    }
    const shares = softmax(scores);
    looked.push(shares);
    for (let s = 0; s < (off(head) ? 0 : keys.length); s++) {
      const value = values[s], share = shares[s], far = Math.max(0, first + s * width);
      for (let i = 0; i < width; i++) mixed[from + i] += share * (value[from + i] + given[far + i]);
    }
  }
  return { mixed, looked };
}
