// One window of a LocalRNN, to be dragged along a sequence and stepped cell by cell. The cells are computed here.
// Wang et al. (2019), R-Transformer, §3.1, Eq. 2.

import { apart, heatMap } from "./chart.js";
import { css, diverging, inkOn } from "./colours.js";
import { canvas, checkbox, select, slider, stepped } from "./page.js";

const LEFT = 92, ROW = 26, STRIP = 70, LEGEND = 24; // in CSS pixels
const CELL = 6, NARROWEST = 380; // the least width of a position, and of the picture, for its legend
const ORANGE = [222, 143, 5], BLUE = [1, 115, 178];

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const product = (matrix, vector) => matrix.map((row) => row.reduce((sum, weight, i) => sum + weight * vector[i], 0));
const zip = (f, ...vectors) => vectors[0].map((_, i) => f(...vectors.map((vector) => vector[i])));
const part = (vector, k, D) => vector.slice(k * D, (k + 1) * D);

/** One step of each cell: from what input and state bring, and the state, to named gates and the next state. */
const CELLS = {
  rnn(a, u, { h }) {
    return { gates: {}, h: zip((x, y) => Math.tanh(x + y), a, u), c: h };
  },
  gru(a, u, { h }) {
    const D = h.length;
    const [r, z] = [0, 1].map((k) => zip((x, y) => sigmoid(x + y), part(a, k, D), part(u, k, D)));
    const n = zip((x, gate, y) => Math.tanh(x + gate * y), part(a, 2, D), r, part(u, 2, D));
    return { gates: { "reset r": r, "update z": z, "candidate n": n }, h: zip((g, one, old) => (1 - g) * one + g * old, z, n, h), c: h };
  },
  lstm(a, u, { h, c }) {
    const D = h.length;
    const [i, f, g, o] = [0, 1, 2, 3].map((k) =>
      zip((x, y) => (k === 2 ? Math.tanh : sigmoid)(x + y), part(a, k, D), part(u, k, D)));
    const memory = zip((keep, old, write, one) => keep * old + write * one, f, c, i, g);
    return { gates: { "input i": i, "forget f": f, "candidate g": g, "output o": o }, h: zip((open, one) => open * Math.tanh(one), o, memory), c: memory };
  },
};

/** All steps of the window that ends at position t: what each read, its gates, and the state before and after. */
function run({ x, cells }, { cell, window, position, processed }) {
  const { w_ih, w_hh, b_ih, b_hh } = cells[cell], D = x[0].length, none = Array(D).fill(0);
  const steps = [];
  let state = { h: none, c: none };
  for (let s = position - window + 1; s <= position; s++) {
    const pad = s < 1, input = pad ? none : x[s - 1];
    const skipped = pad && !processed;
    const a = zip((y, b) => y + b, product(w_ih, input), b_ih), u = zip((y, b) => y + b, product(w_hh, state.h), b_hh);
    const after = skipped ? { gates: {}, ...state } : CELLS[cell](a, u, state);
    steps.push({ at: s, pad, skipped, input, before: state.h, after });
    state = { h: after.h, c: after.c };
  }
  return steps;
}

const norm = (vector) => Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));

/** The positions as a strip, the window's in blue and orange, the step's filled. */
function strip({ pen, width }, T, window, state, ink) {
  const first = 2 - window, across = (width - LEFT) / (T + window - 1);
  const x = (s) => LEFT + (s - first) * across, every = apart(across, 22); // room for "pad"
  pen.textAlign = "center";
  for (let s = first; s <= T; s++) {
    const inside = s <= state.position && s > state.position - state.window, here = s === state.position - state.window + state.step;
    const colour = s < 1 ? ORANGE : BLUE;
    pen.fillStyle = css(colour);
    if (here) pen.fillRect(x(s) + 1, 14, across - 2, 24);
    pen.strokeStyle = inside ? pen.fillStyle : "#9995";
    pen.lineWidth = inside ? 2.5 : 1;
    if (s > 0 || inside) pen.strokeRect(x(s) + 2, 15, across - 4, 22);
    pen.fillStyle = here ? inkOn(colour) : ink;
    if (s < 1 ? inside && every === 1 : s % every === 0) pen.fillText(s < 1 ? "pad" : s, Math.min(x(s) + across / 2, width - 9), 27);
  }
  pen.textAlign = "left";
  pen.fillStyle = ink;
  pen.fillText("position", 4, 27);
}

export function show(page) {
  const { x, cells, windows } = page.data, T = x.length, D = x[0].length;
  const largest = Math.max(1, ...x.flat().map(Math.abs)); // of the whole input: one scale for all its steps
  select(page, "cell", { options: Object.keys(cells) });
  const widest = slider(page, "window", { label: "window M", min: 1, max: windows });
  slider(page, "position", { label: "position t", min: 1, max: T });
  const step = slider(page, "step", { label: "step in the window", min: 1, max: windows });
  checkbox(page, "processed", { label: "pads go through the cell" });
  let rows = [];
  /** The position under a place of the strip; below 1, a pad. */
  const at = (px) => 2 - widest.max + Math.floor(((px - LEFT) / (picture.element.clientWidth - LEFT)) * (T + Number(widest.max) - 1));
  const picture = canvas(page, {
    height: STRIP,
    grab(px, py, first) {
      const { position, window } = page.state, here = at(px);
      if (px < LEFT || py > STRIP) return undefined;
      if (first && here <= position && here > position - window) return { step: here - position + window };
      return { position: Math.min(T, Math.max(1, here)), step: window };
    },
    key(name) {
      const { position, window, step: now } = page.state;
      if (name === "ArrowUp" || name === "ArrowDown") return { step: stepped(name, Math.min(now, window), 1, window) };
      const to = stepped(name, position, 1, T);
      return to && { position: to };
    },
    label: "one step of the window: its input, gates and states as rows of colours",
    point(px, py) {
      const row = rows[Math.floor((py - STRIP) / ROW)], unit = Math.floor(((px - LEFT) / (picture.element.clientWidth - LEFT)) * D);
      return row && unit >= 0 && unit < D ? `${row[0]}, unit ${unit + 1}: ${row[1][unit].toFixed(3)}` : "";
    },
  });
  /** What the colours mean; those of the input have a scale of their own where it exceeds 1. */
  function legend(pen, x, y) {
    for (let i = 0; i < 100; i++) {
      pen.fillStyle = css(diverging(i / 49.5 - 1, page.dark));
      pen.fillRect(x + 18 + i, y - 5, 1.5, 10);
    }
    pen.fillStyle = page.ink;
    pen.fillText("-1", x, y);
    pen.fillText(largest > 1 ? `1; in the row of the input ${(-largest).toFixed(1)} to ${largest.toFixed(1)}` : "1", x + 124, y);
  }
  return (given) => {
    step.max = given.window;
    const state = { ...given, step: Math.min(given.step, given.window) };
    const steps = run(page.data, state), now = steps[state.step - 1];
    rows = [["input x", now.input], ["state before", now.before], ...Object.entries(now.after.gates), ["state after", now.after.h]];
    const least = Math.max(NARROWEST, LEFT + CELL * (T + Number(widest.max) - 1));
    picture.resize(STRIP + ROW * rows.length + LEGEND, least);
    const area = picture.begin();
    strip(area, T, Number(widest.max), state, page.ink);
    rows.forEach(([name, values], i) => {
      const box = { x: LEFT, y: STRIP + i * ROW + 2, width: area.width - LEFT, height: ROW - 4 };
      const most = i ? 1 : largest; // states and gates are within 1
      heatMap(area.pen, box, 1, D, (_, k) => css(diverging(values[k] / most, page.dark)));
      values.forEach((value, k) => {
        if (box.width / D < 38) return;
        area.pen.fillStyle = inkOn(diverging(value / most, page.dark));
        area.pen.textAlign = "center";
        area.pen.fillText(value.toFixed(2), LEFT + ((k + 0.5) * box.width) / D, box.y + box.height / 2);
      });
      area.pen.textAlign = "left";
      area.pen.fillStyle = page.ink;
      area.pen.fillText(name, 4, box.y + box.height / 2);
    });
    legend(area.pen, 4, STRIP + ROW * rows.length + LEGEND / 2);
    const what = now.skipped ? "a pad is left out: the state stays" : now.pad ? "a pad is read: zeros, but the biases act" : `x_${now.at} is read`;
    const moved = norm(zip((a, b) => a - b, now.after.h, now.before));
    return `Step ${state.step} of ${state.window}: ${what}. The state moves by ${moved.toFixed(3)}. At the end of the window, ` +
      `h_${state.position} has the norm ${norm(steps[steps.length - 1].after.h).toFixed(3)}.`;
  };
}
