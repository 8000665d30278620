// Who depends on whom: drag one input, and see which positions of three models change, layer by layer.
// Wang et al. (2019), R-Transformer, §3 and Figure 2.

import { disc, SERIES } from "./chart.js";
import { blues, css } from "./colours.js";
import { load, plant, read } from "./network.js";
import { arrows, canvas, make } from "./page.js";

const BARS = 92, EDGE = 14, LEFT = 120; // pixels: the bars' height, the room for the handle in it, and for names beside it
const FAINT = 1e-4; // the smallest change that has a colour of its own; white is exactly none
const HINT = "Drag an orange or grey bar; a dotted bar shows its old value. Keys: ← → choose an input, ↑ ↓ change it.";

const STYLE = `
.rtx-page .stage { display: grid; gap: 3px 2px; align-items: center; }
.rtx-page .stage h4 { grid-column: 1 / -1; margin: 8px 0 2px; font: 600 14px/1 system-ui, sans-serif; color: inherit; }
.rtx-page .stage canvas { grid-column: 2 / -1; }
.rtx-page .ends { font-size: 13px; line-height: ${BARS / 2 - EDGE}px; align-self: start; margin-top: ${1.5 * EDGE - BARS / 4}px;
  white-space: pre; text-align: right; }
.rtx-page .switch { height: 21px; min-height: 0; padding: 0 6px; font-size: 12px; line-height: 1;
  white-space: nowrap; text-align: left; }
.rtx-page .line { display: contents; }
.rtx-page .square { height: 19px; border: 1px solid var(--rtx-faint); }
.rtx-page .square.changed { border-color: var(--rtx-ink); }
.rtx-page .off .square { opacity: 0.35; }
.rtx-page .legend { font-size: 13px; margin-top: 10px; }
.rtx-page .legend span { display: inline-block; width: 100px; height: 10px; margin: 0 6px; }
@media (prefers-reduced-motion: no-preference) { .rtx-page .travels .square { transition: background 80ms var(--wait); } }`;

/** What each layer of a model returns for a row of numbers; a layer that is off passes on what it gets. */
export function layers(model, values, off = []) {
  const tree = plant(values.map((value) => [value]));
  read(model, tree, [...values.keys()], { off });
  let rows = tree.rows.x;
  return model.layers.map(({ name }) => (rows = tree.rows[name] ?? rows));
}

/** How far each position of each layer moves: the distance of its vectors before and after. */
export const moved = (before, after) =>
  before.map((rows, i) => rows.map((one, t) => Math.hypot(...one.map((value, k) => value - after[i][t][k]))));

/** The models, which read numbers, and end with their last layer. */
export const loaded = ({ models, width }, bytes) =>
  models.map((model) => ({ ...load({ ...model, width, positions: "learned" }, bytes), head: (x) => x }));

/** How dark a change is shown, from 0 to 1: by its logarithm, and never quite white. */
const shade = (size) => size && Math.max(0.08, 1 - Math.log(Math.min(1, Math.max(FAINT, size))) / Math.log(FAINT));

export function show(page) {
  const { base } = page.data, models = loaded(page.data, page.weights), T = base.length;
  const yOf = (number) => EDGE + ((1 - number) / 2) * (BARS - 2 * EDGE);
  const valueAt = (y) => Math.round(20 * Math.max(-1, Math.min(1, 1 - (2 * (y - EDGE)) / (BARS - 2 * EDGE)))) / 20;
  const positionAt = (x) => Math.min(T, Math.max(1, 1 + Math.floor(x / across)));
  const far = (value) => (value > 0 ? -0.8 : 0.8); // a value that differs much from what stands there
  let across = 1, table = [], from = 0, last = "", now, plain;

  const picture = canvas(page, {
    label: "the inputs as bars: left and right choose one, up and down change it",
    hint: HINT,
    grab(x, y, first) {
      const { chosen } = page.state, here = positionAt(x);
      if (first) from = y;
      if (first) return here === chosen ? { value: valueAt(y) } : { chosen: here, value: far(base[here - 1]) };
      return Math.abs(y - from) > 2 ? { value: valueAt(y) } : undefined;
    },
    key(name) {
      const { chosen, value } = page.state, twentieths = Math.round(20 * value);
      const moved = arrows(name, ["chosen", chosen, 1, T], ["value", twentieths, -20, 20]);
      if (moved?.chosen) return { ...moved, value: far(base[moved.chosen - 1]) };
      return moved && { value: moved.value / 20 };
    },
  });
  picture.element.style.touchAction = "none"; // a bar is dragged up and down

  const rows = models.flatMap((model) => model.layers.map((layer) => {
    const { name, text } = layer, title = `switch ${text} on or off`;
    const others = () => page.state.off.filter((one) => one !== name);
    const onclick = () => page.set({ off: page.state.off.includes(name) ? others() : [...page.state.off, name] });
    const button = make("button", { className: "switch", title, ariaLabel: `${model.name}: ${text}`, onclick });
    const squares = base.map((_, t) => make("span", { className: "square", onpointerenter() {
      const size = table[rows.findIndex((row) => row.layer === layer)][t];
      page.note(`${model.name}, ${layer.text}, position ${t + 1}: ${size ? `changes by ${size.toPrecision(2)}` : "no change"}`);
    } }));
    return { model, layer, button, squares, line: make("div", {}, button, ...squares) };
  }));
  const style = `grid-template-columns: minmax(${LEFT}px, max-content) repeat(${T}, 1fr)`, scale = make("span");
  const stage = make("div", { className: "stage", style, onpointerleave: () => page.note(HINT) });
  stage.append(make("span", { className: "ends", textContent: "1\ndrag a bar\n−1" }), picture.element);
  rows.forEach(({ model, layer, line, squares }, i) => {
    if (layer === model.layers[0]) stage.append(make("h4", { textContent: model.name }));
    stage.append(line);
    squares.forEach(({ style }, t) => style.setProperty("--wait", `${40 * i + 6 * t}ms`));
  });
  const task = make("p", { ariaLive: "polite" });
  page.show(stage, make("div", { className: "legend" }, "a change of 0.0001", scale, "1 (logarithmic); pale border: no change"), task);
  page.style(STYLE);
  page.longest = 2000;

  function drawInputs({ chosen, value }) {
    const { pen, width } = picture.begin(BARS + 14);
    across = width / T;
    const bar = (t, number) => [t * across + 1.5, Math.min(yOf(0), yOf(number)), across - 3, Math.max(2, Math.abs(yOf(number) - yOf(0)))];
    pen.strokeStyle = page.faint;
    for (const number of [-1, 0, 1]) pen.strokeRect(0, yOf(number), width, 0);
    pen.textAlign = "center";
    for (const t of [1, 5, 10, 15, 20, T]) pen.fillText(t, Math.min((t - 0.5) * across, width - 9), BARS + 5);
    base.forEach((number, t) => {
      const here = t + 1 === chosen;
      pen.fillStyle = here ? SERIES[1] : "#808080";
      pen.fillRect(...bar(t, here ? value : number));
      if (!here) return;
      disc(pen, (t + 0.5) * across, yOf(value), Math.min(9, across / 2 + 1));
      pen.strokeStyle = page.ink;
      pen.stroke();
      pen.setLineDash([2, 2]);
      pen.strokeRect(...bar(t, number));
      pen.setLineDash([]);
    });
  }

  /** Colour the layers. A drag follows the hand; any other change travels from layer to layer, and from left to right. */
  function drawLayers({ chosen, off }) {
    const now = JSON.stringify([chosen, off]), travels = last !== "" && now !== last;
    last = now;
    stage.classList.toggle("travels", travels);
    rows.forEach(({ layer, button, squares, line }, i) => {
      const away = off.includes(layer.name);
      Object.assign(button, { ariaPressed: !away, textContent: `${away ? "☐" : "☑"} ${layer.text}` });
      line.className = away ? "line off" : "line";
      squares.forEach(({ style, classList }, t) => {
        style.background = css(blues(away ? 0 : shade(table[i][t]), page.dark));
        classList.toggle("changed", !away && table[i][t] > 0);
      });
    });
    scale.style.background = `linear-gradient(to right, ${[0.08, 0.5, 1].map((share) => css(blues(share, page.dark)))})`;
  }

  const outputs = (model) => table[rows.findLastIndex((one) => one.model === model)];
  const reached = (model) => outputs(model).flatMap((size, t) => (size ? [t + 1] : []));

  /** Which outputs of a model change, in words. */
  function told(model) {
    const end = outputs(model), places = reached(model);
    if (!places.length) return `${model.name}: nothing.`;
    const first = places[0], final = places.at(-1), left = (100 * end[T - 1]) / end[first - 1];
    const range = first === final ? `position ${first}` : `positions ${first} to ${final}`;
    if (final < T || first === final) return `${model.name}: ${range}, no other.`;
    return `${model.name}: ${range}; at ${T}, ${left < 0.01 ? "less than 0.01" : left.toPrecision(2)} % of the change at ${first} is left.`;
  }

  const [, local, blocks] = models;
  const reach = (model) => reached(model).length;
  const CHALLENGES = [
    ["switch off one layer of LocalRNN, so that its change reaches only the 3 next positions.", ({ chosen }) => chosen < T - 3 && reach(local) === 4],
    ["make the change end in the R-Transformer just where it ends in LocalRNN.",
      ({ chosen }) => chosen + reach(blocks) <= T && reach(blocks) === reach(local)],
    ["make every position but the changed one stay as it was, in the R-Transformer.",
      ({ chosen }) => chosen < T && reach(blocks) === 1],
  ];

  /** The next challenge; one that is met makes room for the next. */
  function challenge(state) {
    const [text, met] = CHALLENGES[state.solved] ?? ["", () => false];
    task.textContent = text ? `${state.solved ? "Well done. " : ""}Challenge ${state.solved + 1} of ${CHALLENGES.length}: ${text}` : "All challenges are met.";
    if (text && met(state)) setTimeout(() => page.set({ solved: state.solved + 1 }));
  }

  return (state) => {
    if (!(state.chosen - 1 in base)) throw new RangeError(`chosen: expected 1 to ${T}, got ${state.chosen}`);
    const { chosen, value, off } = state, changed = base.map((number, t) => (t + 1 === chosen ? value : number));
    if (now !== String(off)) [now, plain] = [String(off), models.map((model) => layers(model, base, off))];
    table = models.flatMap((model, i) => moved(plain[i], layers(model, changed, off)));
    drawInputs(state);
    drawLayers(state);
    challenge(state);
    const by = value - base[chosen - 1], what = `Input ${chosen} is changed by ${by < 0 ? "−" : "+"}${Math.abs(by).toFixed(2)}. Which outputs change?`;
    return `${what} ${models.map(told).join(" ")}`;
  };
}
