// One step of each recurrent cell, as torch's: its gates by name, and the next state { h, c }.
//
// `read` is what the input brings to all gates, one after the other, and `kept` what the state brings.

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const zip = (f, ...vectors) => vectors[0].map((_, i) => f(...vectors.map((vector) => vector[i])));

/** The gates, each by its function of the two sums. */
function gatesOf(functions, read, kept) {
  const D = read.length / functions.length, part = (vector, k) => vector.slice(k * D, (k + 1) * D);
  return functions.map((f, k) => zip((a, b) => f(a + b), part(read, k), part(kept, k)));
}

export const CELLS = {
  rnn: (read, kept, { c }) => ({ gates: {}, h: zip((a, b) => Math.tanh(a + b), read, kept), c }),
  gru(read, kept, { h, c }) {
    const D = h.length, [r, z] = gatesOf([sigmoid, sigmoid], read.slice(0, 2 * D), kept.slice(0, 2 * D));
    const n = zip((a, gate, b) => Math.tanh(a + gate * b), read.slice(2 * D), r, kept.slice(2 * D));
    const next = zip((gate, one, old) => (1 - gate) * one + gate * old, z, n, h);
    return { gates: { "reset r": r, "update z": z, "candidate n": n }, h: next, c };
  },
  lstm(read, kept, { c }) {
    const [i, f, g, o] = gatesOf([sigmoid, sigmoid, Math.tanh, sigmoid], read, kept);
    const memory = zip((keep, old, write, one) => keep * old + write * one, f, c, i, g);
    const next = zip((open, one) => open * Math.tanh(one), o, memory);
    return { gates: { "input i": i, "forget f": f, "candidate g": g, "output o": o }, h: next, c: memory };
  },
};
