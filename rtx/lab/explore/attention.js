// Where a position looks: tokens coloured by its weights, the head's whole map, and the maps of all heads.

import { bitmap, SERIES } from "./chart.js";
import { blues, shaded, viridis } from "./colours.js";
import { make, percent, printed, select, slider } from "./page.js";
import { board } from "./panels.js";
import { readTensors } from "./tensor.js";

const STYLE = `
.rtx-page .tokens { display: flex; flex-wrap: wrap; gap: 1px; font: 13px/23px ui-monospace, monospace; white-space: pre; }
.rtx-page .tokens span { min-width: 14px; max-width: 40ch; padding: 0 3px; text-align: center;
  overflow: hidden; text-overflow: ellipsis; }
.rtx-page .tokens .here { box-shadow: inset 0 0 0 2px ${SERIES[1]}; }
.rtx-page .tokens .unseen { opacity: 0.65; }
.rtx-page .maps { display: flex; flex-wrap: wrap; gap: 0 24px; margin-top: 8px; }
.rtx-page .maps > canvas { width: 344px; max-width: 100%; }
.rtx-page .heads { display: grid; gap: 6px; align-content: start; align-items: center; font-size: 13px; margin-top: 6px; }
.rtx-page .heads canvas { aspect-ratio: 1; image-rendering: pixelated; outline: 1px solid #8888; cursor: pointer; }
.rtx-page .heads .chosen { outline: 3px solid ${SERIES[1]}; }`;

export function show(page) {
  const { labels, queries, same } = page.data;
  const tensors = readTensors(page.weights), layers = page.data.layers.map((name, i) => ({ name, ...tensors[i] }));
  const [, T, S] = layers[0].shape, widest = Math.max(...layers.map(({ shape }) => shape[0]));
  const weight = (layer, head, t, s) => layers[layer].values[(head * T + t) * S + s];
  const named = (names, i) => (names[i] === String(i + 1) ? names[i] : `${i + 1} “${printed(names[i])}”`);

  select(page, "layer", { options: layers.map(({ name }, i) => [i, `${i + 1}: ${name}`]) });
  const heads = slider(page, "head", { max: widest - 1, text: (head) => head + 1 });
  slider(page, "position", { max: T - 1, text: (t) => named(queries, t) });

  let now = {};
  const words = labels.map((label, s) => {
    const tell = () => page.note(`${named(labels, s)}: ${percent(now.row[s])}`);
    return make("span", { textContent: printed(label), onpointerenter: tell, onclick: () => same && page.set({ position: s }) });
  });
  const large = board(page, { high: 280, label: "map of weights: each position has a row, and looks at columns" });
  const maps = layers.map(({ shape }, layer) => Array.from({ length: shape[0] }, (_, head) => {
    const map = bitmap(T, S, (t, s) => weight(layer, head, t, s) && viridis(Math.sqrt(weight(layer, head, t, s))));
    const title = `layer ${layer + 1}, head ${head + 1}`;
    return Object.assign(map, { title, role: "img", ariaLabel: title, onclick: () => page.set({ layer, head }) });
  }));
  const name = (layer) => make("span", { textContent: `layer ${layer + 1}`, style: "grid-column: 1" });
  const style = `grid-template-columns: auto repeat(${widest}, clamp(12px, calc(50cqw / ${widest}), 80px))`;
  const overview = make("div", { className: "heads", style }, ...maps.flatMap((row, layer) => [name(layer), ...row]));
  page.style(STYLE);
  page.show(make("div", { className: "tokens", onpointerleave: () => page.note("") }, ...words), make("div", { className: "maps" }, large.element, overview));

  function drawTokens({ row, position }) {
    const most = Math.max(...row);
    words.forEach((word, s) => {
      word.style = shaded(blues(Math.sqrt(row[s] / most), page.dark));
      word.className = same && s === position ? "here" : row[s] > 0 ? "" : "unseen";
    });
  }

  function drawMaps({ layer, head }) {
    const values = queries.map((_, t) => labels.map((_, s) => weight(layer, head, t, s)));
    const say = (t, s) => `${named(queries, t)} gives ${percent(values[t][s])} to ${named(labels, s)}`;
    const texts = { up: "position", across: "attended to", scale: "square root of weight" };
    large.draw([{ kind: "heat", values, image: maps[layer][head], say, y: [0, 1], sets: "position", ...texts }]);
    maps.forEach((row, l) => row.forEach((map, h) => (map.className = l === layer && h === head ? "chosen" : "")));
  }

  function sentence({ layer, head, position, row }) {
    const seen = row.map((weight, s) => [weight, s]).filter(([weight]) => weight > 0).sort(([a], [b]) => b - a);
    const best = seen.slice(0, 3).map(([weight, s]) => `${named(labels, s)} (${percent(weight)})`);
    const entropy = seen.reduce((sum, [weight]) => sum - weight * Math.log(weight), 0);
    return `Layer ${layer + 1}, head ${head + 1}: position ${named(queries, position)} looks most at ` +
      `${best.join(", ")}. Its attention is spread as if over ${Math.exp(entropy).toFixed(1)} of the ` +
      (seen.length === 1 ? "1 position that it sees." : `${seen.length} positions that it sees.`);
  }

  return ({ layer, head, position }) => {
    page.note(""); // the weight under the pointer may be another now
    heads.max = layers[layer].shape[0] - 1;
    head = Math.min(head, Number(heads.max));
    now = { layer, head, position, row: labels.map((_, s) => weight(layer, head, position, s)) };
    drawTokens(now);
    drawMaps(now);
    return sentence(now);
  };
}
