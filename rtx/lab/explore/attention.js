// Where a position looks: tokens coloured by its weights, the head's whole map, and the maps of all heads.

import { axes, bitmap, colourBar, SERIES } from "./chart.js";
import { blues, css, inkOn, viridis } from "./colours.js";
import { canvas, make, select, slider, stepped } from "./page.js";
import { readTensors } from "./tensor.js";

const LETTERS = 40; // of a token, the rest of which is left out
const MAP = 280, LEFT = 44, TOP = 26, BELOW = 64; // of the large map, and the room around it
const SMALL = 80, LEAST = 12, BETWEEN = 6, ROOM = 52; // of the map of a head; between two; for "layer 1"
const NARROW = 560; // of a picture in which the maps of all heads are below the large one
const STYLE = `
.rtx-page .tokens { display: flex; flex-wrap: wrap; gap: 1px; font: 13px/23px ui-monospace, monospace; white-space: pre; }
.rtx-page .tokens[style] { display: grid; }
.rtx-page .tokens span { min-width: 14px; padding: 0 3px; text-align: center; overflow: hidden; }
.rtx-page .tokens[style] span { padding: 0; }
.rtx-page .tokens .here { box-shadow: inset 0 0 0 2px ${SERIES[1]}; }
.rtx-page .tokens .unseen { opacity: 0.65; }
.rtx-page .scale { display: flex; gap: 6px; font-size: 13px; }
.rtx-page .scale :first-child { width: 100px; height: 10px; margin-top: 5px; }`;
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const printed = (label) => ({ " ": "␣", "\n": "⏎", "": "·" })[label] ?? label; // what is not seen in print
const shortened = (label) => (label.length > LETTERS ? `${label.slice(0, LETTERS - 1)}…` : printed(label));
const inside = (box, x, y) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;

export function show(page) {
  const { labels, queries, columns, same } = page.data;
  const roots = readTensors(page.weights), layers = page.data.layers.map((name, i) => ({ name, ...roots[i] }));
  const [, T, S] = layers[0].shape, widest = Math.max(...layers.map(({ shape }) => shape[0]));
  const root = (layer, head, t, s) => layers[layer].values[(head * T + t) * S + s]; // of a weight
  const images = layers.map(({ shape }, layer) => Array.from({ length: shape[0] }, (_, head) =>
    bitmap(T, S, (t, s) => root(layer, head, t, s) && viridis(root(layer, head, t, s)))));
  const named = (names, i) => (names[i] === String(i + 1) ? names[i] : `${i + 1} “${printed(names[i])}”`);

  select(page, "layer", { options: layers.map(({ name }, i) => [i, `${i + 1}: ${name}`]) });
  const heads = slider(page, "head", { max: widest - 1, text: (head) => head + 1 });
  slider(page, "position", { max: T - 1, text: (t) => named(queries, t) });

  let maps = [], now = {};
  /** Left and right choose the position, up and down the head. */
  const key = (name) => {
    if (name === "ArrowUp" || name === "ArrowDown") return { head: stepped(name, now.head, 0, Number(heads.max)) };
    const position = stepped(name, now.position, 0, T - 1);
    return position === undefined ? undefined : { position };
  };
  const tokens = make("div", { className: "tokens" }), scale = make("span"), largest = make("span");
  const words = labels.map((label, s) => {
    const tell = () => page.note(`${named(labels, s)}: ${percent(now.row[s])}`);
    const word = make("span", { textContent: shortened(label), onpointerenter: tell });
    if (same) word.onclick = () => page.set({ position: s });
    return word;
  });
  if (columns) tokens.style.gridTemplateColumns = `repeat(${columns}, 24px)`;
  tokens.append(...words);
  page.picture(make("div", {}, make("style", { textContent: STYLE }), tokens, make("div", { className: "scale" }, "0", scale, largest)));
  const overview = canvas(page, {
    height: MAP,
    least: ROOM + widest * (LEAST + BETWEEN),
    label: "maps of weights: a row for each position, a column for each that is attended to",
    point(x, y) {
      const found = maps.find((box) => inside(box, x, y));
      if (!found) return "";
      const [t, s] = cell(found, x, y), { layer, head } = found, weight = percent(root(layer, head, t, s) ** 2);
      return `layer ${layer + 1}, head ${head + 1}: ${named(queries, t)} gives ${weight} to ${named(labels, s)}`;
    },
    grab(x, y) {
      const found = maps.find((box) => inside(box, x, y));
      return found && { layer: found.layer, head: found.head, ...(found.large && { position: cell(found, x, y)[0] }) };
    },
    key,
  });
  const cell = (box, x, y) => [Math.floor(((y - box.y) / box.height) * T), Math.floor(((x - box.x) / box.width) * S)];

  function drawTokens({ row, position }) {
    const most = Math.max(...row);
    words.forEach((word, s) => {
      const colour = blues(Math.sqrt(row[s] / most), page.dark);
      Object.assign(word.style, { background: css(colour), color: inkOn(colour) });
      word.className = same && s === position ? "here" : row[s] > 0 ? "" : "unseen";
    });
    scale.style.background = `linear-gradient(to right, ${[0, 0.5, 1].map((share) => css(blues(share, page.dark)))})`;
    largest.textContent = `${percent(most)}, the largest; by the square root`;
  }

  function frame(pen, { x, y, width, height }, strokeStyle, lineWidth) {
    Object.assign(pen, { strokeStyle, lineWidth });
    pen.strokeRect(x, y, width, height);
  }

  function drawMaps({ layer, head, position }) {
    const whole = overview.element.clientWidth || 720, narrow = whole < NARROW;
    const size = Math.min(MAP, whole - LEFT - 12), left = narrow ? ROOM : LEFT + size + ROOM + 24;
    const top = narrow ? TOP + size + BELOW + 20 : TOP;
    const small = Math.max(LEAST, Math.min(SMALL, (whole - left) / widest - BETWEEN)), step = small + BETWEEN;
    overview.resize(Math.max(TOP + size + BELOW, top + layers.length * step));
    const { pen } = overview.begin(), large = { layer, head, large: true, x: LEFT, y: TOP, width: size, height: size };
    maps = layers.flatMap(({ shape }, l) => Array.from({ length: shape[0] }, (_, h) =>
      ({ layer: l, head: h, x: left + h * step, y: top + l * step, width: small, height: small })));
    maps.unshift(large);
    pen.imageSmoothingEnabled = false;
    for (const box of maps) {
      pen.drawImage(images[box.layer][box.head], box.x, box.y, box.width, box.height);
      const chosen = box.layer === layer && box.head === head && !box.large;
      frame(pen, box, chosen ? SERIES[1] : "#8888", chosen ? 3 : 1);
    }
    pen.fillText("all heads", left, top - 13);
    layers.forEach((_, l) => pen.fillText(`layer ${l + 1}`, left - 48, top + l * step + small / 2));
    axes(pen, page, large, { x: [0.5, S + 0.5], y: [T + 0.5, 0.5], grid: false, up: "position", across: "attended to" });
    frame(pen, { ...large, y: TOP + (position * size) / T, height: Math.max(2, size / T) }, SERIES[1], 1.5);
    colourBar(pen, page, LEFT, TOP + size + 52, viridis, "0", "1  weight, by its square root");
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
    heads.max = layers[layer].shape[0] - 1;
    head = Math.min(head, Number(heads.max));
    now = { layer, head, position, row: Array.from({ length: S }, (_, s) => root(layer, head, position, s) ** 2) };
    drawTokens(now);
    drawMaps(now);
    return sentence(now);
  };
}
