// Where a position looks: tokens coloured by its weights, the head's whole map, and the maps of all heads.

import { axes, bitmap, colourBar, SERIES } from "./chart.js";
import { blues, css, inkOn, viridis } from "./colours.js";
import { canvas, make, select, slider, stepped } from "./page.js";
import { readTensors } from "./tensor.js";

const MAP = 280, LEFT = 44, TOP = 26, BELOW = 64; // of the large map, and the room around it
const SMALL = 80, LEAST = 12, BETWEEN = 6, ROOM = 52; // of the map of a head; between two; for "layer 1"
const NARROW = 560; // of a picture in which the maps of all heads are below the large one
const STYLE = `
.rtx-page .tokens { display: flex; flex-wrap: wrap; gap: 1px; font: 13px/23px ui-monospace, monospace; white-space: pre; }
.rtx-page .tokens span { min-width: 14px; max-width: 40ch; padding: 0 3px; text-align: center; overflow: hidden; text-overflow: ellipsis; }
.rtx-page .tokens .here { box-shadow: inset 0 0 0 2px ${SERIES[1]}; }
.rtx-page .tokens .unseen { opacity: 0.65; }`;
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const printed = (label) => ({ " ": "␣", "\n": "⏎", "": "·" })[label] ?? label; // what is not seen in print

export function show(page) {
  const { labels, queries, same } = page.data;
  const roots = readTensors(page.weights), layers = page.data.layers.map((name, i) => ({ name, ...roots[i] }));
  const [, T, S] = layers[0].shape, widest = Math.max(...layers.map(({ shape }) => shape[0]));
  const root = (layer, head, t, s) => layers[layer].values[(head * T + t) * S + s]; // of a weight
  const all = layers.flatMap(({ shape }, layer) => Array.from({ length: shape[0] }, (_, head) => {
    const image = bitmap(T, S, (t, s) => root(layer, head, t, s) && viridis(root(layer, head, t, s)));
    return { layer, head, image };
  }));
  const named = (names, i) => (names[i] === String(i + 1) ? names[i] : `${i + 1} “${printed(names[i])}”`);

  select(page, "layer", { options: layers.map(({ name }, i) => [i, `${i + 1}: ${name}`]) });
  const heads = slider(page, "head", { max: widest - 1, text: (head) => head + 1 });
  slider(page, "position", { max: T - 1, text: (t) => named(queries, t) });

  let maps = [], now = {}; // maps: the boxes of all maps, the large one first
  const words = labels.map((label, s) => {
    const tell = () => page.note(`${named(labels, s)}: ${percent(now.row[s])}`);
    return make("span", { textContent: printed(label), onpointerenter: tell, onclick: () => same && page.set({ position: s }) });
  });
  page.picture(make("div", {}, make("style", { textContent: STYLE }), make("div", { className: "tokens" }, ...words)));
  /** The map at a place, and the row and column there. */
  const cell = (x, y) => {
    const box = maps.find((one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height);
    return box && [box, Math.floor(((y - box.y) / box.height) * T), Math.floor(((x - box.x) / box.width) * S)];
  };
  const overview = canvas(page, {
    height: MAP,
    least: ROOM + widest * (LEAST + BETWEEN),
    label: "maps of weights: a row for each position, a column for each that is attended to",
    point(x, y) {
      if (!cell(x, y)) return "";
      const [{ layer, head }, t, s] = cell(x, y), weight = percent(root(layer, head, t, s) ** 2);
      return `layer ${layer + 1}, head ${head + 1}: ${named(queries, t)} gives ${weight} to ${named(labels, s)}`;
    },
    grab(x, y) {
      if (!cell(x, y)) return undefined;
      const [box, t] = cell(x, y);
      return box === maps[0] ? { position: t } : { layer: box.layer, head: box.head };
    },
    /** Left and right choose the position, up and down the head. */
    key(name) {
      if (name === "ArrowUp" || name === "ArrowDown") return { head: stepped(name, now.head, 0, Number(heads.max)) };
      const position = stepped(name, now.position, 0, T - 1);
      return position === undefined ? undefined : { position };
    },
  });

  function drawTokens({ row, position }) {
    const most = Math.max(...row);
    words.forEach((word, s) => {
      const colour = blues(Math.sqrt(row[s] / most), page.dark);
      Object.assign(word.style, { background: css(colour), color: inkOn(colour) });
      word.className = same && s === position ? "here" : row[s] > 0 ? "" : "unseen";
    });
  }

  function frame(pen, { x, y, width, height }, strokeStyle, lineWidth) {
    Object.assign(pen, { strokeStyle, lineWidth });
    pen.strokeRect(x, y, width, height);
  }

  function drawMaps({ layer, head, position }) {
    const whole = overview.element.clientWidth || 720, narrow = whole < NARROW, size = Math.min(MAP, whole - LEFT - 12);
    const [left, top] = narrow ? [ROOM, TOP + size + BELOW + 20] : [LEFT + size + ROOM + 24, TOP];
    const small = Math.max(LEAST, Math.min(SMALL, (whole - left) / widest - BETWEEN)), step = small + BETWEEN;
    overview.resize(Math.max(TOP + size + BELOW, top + layers.length * step));
    const { pen } = overview.begin(), chosen = all.find((one) => one.layer === layer && one.head === head);
    const large = { ...chosen, x: LEFT, y: TOP, width: size, height: size };
    maps = all.map((one) => ({ ...one, x: left + one.head * step, y: top + one.layer * step, width: small, height: small }));
    maps.unshift(large);
    pen.imageSmoothingEnabled = false;
    for (const box of maps) {
      pen.drawImage(box.image, box.x, box.y, box.width, box.height);
      frame(pen, box, "#8888", 1);
    }
    frame(pen, maps[1 + all.indexOf(chosen)], SERIES[1], 3);
    frame(pen, { ...large, y: TOP + (position * size) / T, height: Math.max(2, size / T) }, SERIES[1], 1.5);
    pen.fillText("all heads", left, top - 13);
    layers.forEach((_, l) => pen.fillText(`layer ${l + 1}`, left - 48, top + l * step + small / 2));
    axes(pen, page, large, { x: [0.5, S + 0.5], y: [T + 0.5, 0.5], grid: false, up: "position", across: "attended to" });
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
