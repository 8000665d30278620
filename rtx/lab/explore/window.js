// One window of a LocalRNN, to be dragged along a sequence and stepped cell by cell. The cells are computed here.
// Wang et al. (2019), R-Transformer, §3.1, Eq. 2.

import { colourBar } from "./chart.js";
import { css, diverging, inkOn, shaded } from "./colours.js";
import { arrows, canvas, checkbox, decimals, make, select, slider, table } from "./page.js";
import { CELLS, linear, readTensors } from "./tensor.js";

const LEFT = 92, STRIP = 52, LEGEND = 24; // in CSS pixels
const CELL = 6; // the least width of a position
const MOST = 8; // numbers in a row that are written into it
const GREY = [128, 128, 128], BLUE = [1, 115, 178];

/** All steps of the window that ends at position t: what each read, its gates, and the states before and after. */
function run(x, weights, { cell, window, position, processed }) {
  const none = x[0].map(() => 0), [h, c] = [0, 1].map(() => new Float64Array(weights[`${cell}.weight_hh_l0`].shape[1]));
  const times = (vector, part) => linear(vector, weights[`${cell}.weight_${part}_l0`], weights[`${cell}.bias_${part}_l0`]);
  return Array.from({ length: window }, (_, step) => {
    const at = position - window + 1 + step, pad = at < 1, input = pad ? none : x[at - 1], skipped = pad && !processed;
    const before = [...h], memory = [...c], gates = skipped ? {} : CELLS[cell](times(input, "ih"), times(h, "hh"), h, c);
    return { at, pad, skipped, input, before, memory, gates, after: [...h], kept: [...c] };
  });
}

/** The positions as a strip: the window's in blue, its pads grey, the step's filled. */
function strip({ pen, width }, T, window, state, ink) {
  const first = 2 - window, across = (width - LEFT) / (T + window - 1), every = [1, 2, 5, 10].find((one) => one * across >= 22) ?? 20;
  pen.fillText("position", 4, 27);
  pen.textAlign = "center";
  for (let s = first; s <= T; s++) {
    const step = s - state.position + state.window, inside = step >= 1 && step <= state.window, here = step === state.step;
    const x = LEFT + (s - first) * across, colour = s < 1 ? GREY : BLUE;
    pen.fillStyle = css(colour);
    if (here) pen.fillRect(x + 1, 14, across - 2, 24);
    pen.strokeStyle = inside ? pen.fillStyle : "#9995";
    pen.lineWidth = inside ? 2.5 : 1;
    if (s > 0 || inside) pen.strokeRect(x + 2, 15, across - 4, 22);
    pen.fillStyle = here ? inkOn(colour) : ink;
    if (s < 1 ? inside && every === 1 : s % every === 0) pen.fillText(s < 1 ? "pad" : s, Math.min(x + across / 2, width - 9), 27);
  }
}

export function show(page) {
  const { x, cells, windows } = page.data, T = x.length, D = x[0].length, weights = readTensors(page.weights);
  select(page, "cell", { options: cells });
  slider(page, "window", { label: "window M", min: 1, max: windows });
  slider(page, "position", { label: "position t", min: 1, max: T });
  const step = slider(page, "step", { label: "step in the window", min: 1, max: windows });
  checkbox(page, "processed", { label: "pads go through the cell" });
  const picture = canvas(page, {
    label: "the window on the sequence: left and right move it, up and down choose a step in it",
    grab(px, py, first) {
      const { position, window } = page.state, share = (px - LEFT) / (picture.element.clientWidth - LEFT);
      const here = 2 - windows + Math.floor(share * (T + windows - 1));
      if (share < 0 || py > STRIP) return undefined;
      if (first && here <= position && here > position - window) return { step: here - position + window };
      return { position: Math.min(T, Math.max(1, here)), step: window };
    },
    key(name) {
      const { position, window, step: now } = page.state;
      return arrows(name, ["position", position, 1, T], ["step", Math.min(now, window), 1, window]);
    },
  });
  const numbers = make("div");
  page.show(numbers);

  return (given) => {
    step.max = given.window;
    const state = { ...given, step: Math.min(given.step, given.window) };
    const steps = run(x, weights, state), now = steps[state.step - 1], { after } = now;
    const memory = (name, values) => (state.cell === "lstm" ? [[name, values]] : []);
    const rows = [["input x", now.input], ["state before", now.before], ...memory("c before", now.memory),
      ...Object.entries(now.gates), ...memory("c after", now.kept), ["state after", after]];
    const area = picture.begin(STRIP + LEGEND, LEFT + CELL * (T + windows - 1)), digits = area.width < LEFT + 40 * D ? 1 : 2;
    numbers.replaceChildren(table([...x[0].keys()].map((k) => k + 1), rows, (value) => {
      const style = shaded(diverging(value, page.dark));
      return { textContent: D > MOST ? "" : decimals(value, digits), title: decimals(value, 3), style };
    }));
    strip(area, T, windows, state, page.ink);
    colourBar(area.pen, page, 4, STRIP + LEGEND / 2, (share) => diverging(2 * share - 1, page.dark), "-1", "1");
    const what = now.skipped ? "a pad is left out: the state stays" : now.pad ? "a pad is read: zeros, but the biases act" : `x_${now.at} is read`;
    const moved = Math.hypot(...after.map((value, k) => value - now.before[k]));
    return `Step ${state.step} of ${state.window}: ${what}. The state moves by ${moved.toFixed(3)}. At the end of the window, ` +
      `h_${state.position} has the norm ${Math.hypot(...steps.at(-1).after).toFixed(3)}.`;
  };
}
