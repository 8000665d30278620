// Where a position looks: tokens coloured by its weights, the head's whole map, and the maps of all heads.

import { bitmap } from "./chart.js";
import { blues, css, inkOn, viridis } from "./colours.js";
import { canvas, select, slider, stepped, unpack } from "./page.js";

const LINE = 24, GAP = 3, MAP = 280, LEGEND = 22; // pixels: a line of tokens, space between them, the map, a legend
const NARROWEST = 380, LETTERS = 40; // of a picture, for its legend; of a token, the rest of which is left out
const SMALL = 8, BETWEEN = 6, ROOM = 80; // the smallest map of a head; space between those, and beside the large one
const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
// what is not seen in print: a blank, a line's end, nothing
const printed = (label) => ({ " ": "␣", "\n": "⏎", "": "·" })[label] ?? label;
const shortened = (label) => (label.length > LETTERS ? `${label.slice(0, LETTERS - 1)}…` : printed(label));

export function show(page) {
  const { labels, queries, columns, same } = page.data;
  const layers = page.data.layers.map(({ name, roots }) => ({ name, ...unpack(roots) }));
  const at = ({ values, shape: [, T, S] }, head, t, s) => values[(head * T + t) * S + s] ** 2; // roots were packed
  const [, T, S] = layers[0].shape;

  const named = (names, i) => (names[i] === String(i + 1) ? names[i] : `${i + 1} “${printed(names[i])}”`);

  select(page, "layer", { options: layers.map(({ name }, i) => [i, `${i + 1}: ${name}`]) });
  const heads = slider(page, "head", { max: layers[0].shape[0] - 1, text: (head) => head + 1 });
  slider(page, "position", { max: T - 1, text: (t) => named(queries, t) });

  let boxes = [], maps = [], now = {};
  /** Left and right choose the position, up and down the head. */
  const key = (name) => {
    if (name === "ArrowUp" || name === "ArrowDown") return { head: stepped(name, now.head, 0, Number(heads.max)) };
    const position = stepped(name, now.position, 0, T - 1);
    return position === undefined ? undefined : { position };
  };
  const inside = (box, x, y) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
  const tokens = canvas(page, {
    height: LINE + LEGEND,
    least: Math.max(NARROWEST, columns * LINE),
    label: "tokens, coloured by the attention weight that the position gives them",
    point(x, y) {
      const s = boxes.findIndex((box) => inside(box, x, y));
      return s >= 0 && `${named(labels, s)}: ${percent(now.row[s])}`;
    },
    grab(x, y) {
      const s = boxes.findIndex((box) => inside(box, x, y));
      return same && s >= 0 ? { position: s } : undefined;
    },
    key,
  });
  const widest = Math.max(...layers.map(({ shape }) => shape[0])), beside = (SMALL + BETWEEN) * widest;
  const overview = canvas(page, {
    height: MAP + 40,
    least: Math.max(NARROWEST, Math.ceil(Math.min((ROOM + beside) / 0.45, MAP + ROOM + beside))),
    label: "maps of weights: a row for each position, a column for each that is attended to",
    point(x, y) {
      const found = maps.find((box) => inside(box, x, y));
      if (!found) return "";
      const [t, s] = cell(found, x, y), { layer, head } = found;
      const weight = percent(at(layers[layer], head, t, s));
      return `layer ${layer + 1}, head ${head + 1}: ${named(queries, t)} gives ${weight} to ${named(labels, s)}`;
    },
    grab(x, y) {
      const found = maps.find((box) => inside(box, x, y));
      return found && { layer: found.layer, head: found.head, ...(found.large && { position: cell(found, x, y)[0] }) };
    },
    key,
  });
  const cell = (box, x, y) => [Math.floor(((y - box.y) / box.height) * T), Math.floor(((x - box.x) / box.width) * S)];

  const images = new Map(); // drawn once for each head
  function image(layer, head) {
    const key = `${layer} ${head}`;
    const colour = (t, s) => {
      const weight = at(layers[layer], head, t, s);
      return weight > 0 ? viridis(Math.sqrt(weight)) : null;
    };
    if (!images.has(key)) images.set(key, bitmap(T, S, colour));
    return images.get(key);
  }

  /** Where each token stands: { x, y, width, height } for each, and the height of all. */
  function place(pen, width) {
    const found = [];
    let x = 0, y = 0;
    labels.forEach((label, s) => {
      const wide = columns ? LINE : Math.max(14, pen.measureText(shortened(label)).width + 6);
      if (columns ? s && s % columns === 0 : x && x + wide > width) [x, y] = [0, y + LINE];
      found.push({ x, y, width: wide - (columns ? 1 : 0), height: LINE - (columns ? 1 : GAP) });
      x += wide + (columns ? 0 : 1);
    });
    return { found, height: y + LINE };
  }

  function drawTokens({ row, position }) {
    const first = tokens.begin();
    first.pen.font = "13px ui-monospace, monospace";
    const { found, height } = place(first.pen, first.width);
    tokens.resize(height + LEGEND);
    const { pen } = tokens.begin();
    pen.font = "13px ui-monospace, monospace";
    pen.textAlign = "center";
    boxes = found;
    const most = Math.max(...row);
    found.forEach((box, s) => {
      const colour = blues(Math.sqrt(row[s] / most), page.dark);
      pen.fillStyle = css(colour);
      pen.fillRect(box.x, box.y, box.width, box.height);
      pen.fillStyle = inkOn(colour);
      pen.globalAlpha = row[s] > 0 ? 1 : 0.65; // not seen at all: paler, but read
      pen.fillText(shortened(labels[s]), box.x + box.width / 2, box.y + box.height / 2 + 1);
      pen.globalAlpha = 1;
      if (!same || s !== position) return;
      pen.strokeStyle = "#de8f05";
      pen.lineWidth = 2;
      pen.strokeRect(box.x + 1, box.y + 1, box.width - 2, box.height - 2);
    });
    scale(pen, 0, height + LEGEND / 2, (share) => blues(share, page.dark), "0", `${percent(most)}, the row's largest, by its square root`);
  }

  /** Colours from the first to the last, between what they stand for. */
  function scale(pen, x, y, colour, from, to) {
    pen.font = "12px sans-serif";
    pen.textAlign = "left";
    pen.fillStyle = page.ink;
    pen.fillText(from, x, y);
    pen.fillText(to, x + 118, y);
    for (let i = 0; i < 100; i++) {
      pen.fillStyle = css(colour(i / 99));
      pen.fillRect(x + 12 + i, y - 5, 1.5, 10);
    }
    pen.fillStyle = page.ink;
  }

  function drawMaps({ layer, head, position }) {
    const size = Math.min(MAP, overview.element.clientWidth * 0.55);
    overview.resize(Math.max(size, layers.length * (SMALL + BETWEEN)) + 40);
    const { pen, width } = overview.begin();
    pen.imageSmoothingEnabled = false;
    maps = [];
    const draw = (box) => {
      maps.push(box);
      pen.drawImage(image(box.layer, box.head), box.x, box.y, box.width, box.height);
      const chosen = box.layer === layer && box.head === head;
      pen.strokeStyle = chosen && !box.large ? "#de8f05" : "#8888";
      pen.lineWidth = chosen && !box.large ? 3 : 1;
      pen.strokeRect(box.x, box.y, box.width, box.height);
    };
    draw({ layer, head, large: true, x: 20, y: 20, width: size, height: size });
    pen.strokeStyle = "#de8f05";
    pen.lineWidth = 1.5;
    pen.strokeRect(20, 20 + (position * size) / T, size, Math.max(2, size / T));
    pen.fillText("attended to →", 20, 9);
    pen.save();
    pen.translate(9, 20 + size);
    pen.rotate(-Math.PI / 2);
    pen.fillText("← position", 0, 0);
    pen.restore();

    const left = size + ROOM;
    const small = Math.max(SMALL, Math.min(80, (width - left) / widest - BETWEEN, size / layers.length - BETWEEN));
    pen.fillText("all heads →", left, 9);
    layers.forEach(({ shape }, l) => {
      pen.fillText(`layer ${l + 1}`, left - 48, 20 + l * (small + BETWEEN) + small / 2);
      for (let h = 0; h < shape[0]; h++)
        draw({ layer: l, head: h, x: left + h * (small + BETWEEN), y: 20 + l * (small + BETWEEN), width: small, height: small });
    });
    scale(pen, 20, size + 30, viridis, "0", "1  weight, by its square root");
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
    head = Math.min(head, layers[layer].shape[0] - 1);
    heads.max = layers[layer].shape[0] - 1;
    const row = Array.from({ length: S }, (_, s) => at(layers[layer], head, position, s));
    now = { layer, head, position, row };
    drawTokens(now);
    drawMaps(now);
    return sentence(now);
  };
}
