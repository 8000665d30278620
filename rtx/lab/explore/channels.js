// MC-RNN's channels: a sentence, its blocks in every channel, and the weights of a layer computed here.
// Xu et al. (2019), Eq. 1-6.
import { blues, css, inkOn } from "./colours.js";
import { canvas, slider, stepped, textInput, unpack } from "./page.js";

const ROW = 44, TOP = 26, LEFT = 84, BELOW = 84, LEGEND = 22; // of the picture, in CSS pixels
const APART = 18, NARROWEST = 340; // the least from token to token, and of the picture, for its legend
const ORANGE = "#de8f05";

// As CUTS of vocabulary.py: blanks are Python's, which are not quite those of \s here.
const ended = (text) => text.replaceAll("\n", " <eos> ");
const CUTS = {
  characters: (text) => [...text],
  words: (text) => ended(text).split(/[\p{White_Space}\x1c-\x1f]+/u).filter(Boolean),
  "words and marks": (text) =>
    ended(text).match(/<unk>|<eos>|[\p{L}\p{N}_]+|[^\p{L}\p{N}_\p{White_Space}\x1c-\x1f]/gu) ?? [],
};

/** m_t^k, Eq. (1): predecessors of step t in channel k, both from 1. */
function inDegree(t, k, n, phase = "equation") {
  const begin = phase === "equation" ? k : 2 - k, p = n - 1;
  return ((((t - begin - 1) % p) + p) % p) + 1;
}

// Rows of a matrix from `from` on, times a vector.
const product = ({ shape, values }, x, from = 0, rows = shape.at(-2)) =>
  Float64Array.from({ length: rows }, (_, i) => {
    let sum = 0;
    for (let j = 0; j < x.length; j++) sum += values[(from + i) * shape.at(-1) + j] * x[j];
    return sum;
  });
const add = (...vectors) => vectors[0].map((_, i) => vectors.reduce((sum, one) => sum + one[i], 0));
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const mean = (vectors, width, count) =>
  Float64Array.from({ length: width }, (_, i) => vectors.reduce((sum, one) => sum + one[i], 0) / Math.max(1, count));

/** Eq. (3): h and c from the gates' parts a (of the input) and b (of the state), and the s and c before. */
const CELLS = {
  rnn: (a, b, s, c) => [add(a, b).map(Math.tanh), c],
  gru(a, b, s, c) {
    const H = s.length;
    const h = s.map((before, i) => {
      const reset = sigmoid(a[i] + b[i]), update = sigmoid(a[H + i] + b[H + i]);
      return (1 - update) * Math.tanh(a[2 * H + i] + reset * b[2 * H + i]) + update * before;
    });
    return [h, c];
  },
  lstm(a, b, s, c) {
    const H = s.length, z = add(a, b);
    const after = c.map((one, i) => sigmoid(z[H + i]) * one + sigmoid(z[i]) * Math.tanh(z[2 * H + i]));
    return [after.map((one, i) => sigmoid(z[3 * H + i]) * Math.tanh(one)), after];
  },
};

/** The layer's channel weights α, a row for each input vector. */
function channelWeights(layer, inputs) {
  const { n, cell, start, phase, hh, block, v, r } = layer, H = hh.shape[1];
  const h = Array.from({ length: n }, () => []), c = Array.from({ length: n }, () => []); // [channel][step]
  return inputs.map((x, i) => {
    const t = i + 1, a = add(product(layer.ih, x), layer.ihBias.values);
    const scores = [];
    for (let k = 1; k < n; k++) {
      const full = inDegree(t, k, n, phase), there = Math.min(full, t - 1), m = start === "equation" ? full : there;
      const back = Array.from({ length: there }, (_, j) => j + 1);
      const s = mean(back.map((j) => product(block, h[k][t - j], (j - 1) * H)), H, m); // Eq. (2)
      const b = add(product(hh, s), layer.hhBias.values);
      [h[k][t], c[k][t]] = CELLS[cell](a, b, s, mean(back.map((j) => c[k][t - j]), H, m));
      const mixed = product(v, [...h[k][t], ...x]).map(Math.tanh);
      scores.push(mixed.reduce((sum, one, j) => sum + r.values[j] * one, 0)); // Eq. (6)
    }
    const raised = scores.map((e) => Math.exp(e - Math.max(...scores)));
    return raised.map((one) => one / raised.reduce((sum, other) => sum + other)); // Eq. (5)
  });
}

function readLayer(data) {
  if (!data.layer) return null;
  const { n, cell, start, phase, ...arrays } = data.layer, found = { n, cell, start, phase };
  const names = { ih: "weight_ih_l0", hh: "weight_hh_l0", ihBias: "bias_ih_l0", hhBias: "bias_hh_l0" };
  for (const [name, key] of Object.entries({ ...names, block: "weight_block", v: "v", r: "r" }))
    found[name] = unpack(arrays[key]);
  return found;
}

/** A sentence as the model reads it: weights for each of its tokens, and which of them it does not know. */
function reader(data) {
  const layer = readLayer(data);
  if (!layer) return () => ({});
  const table = unpack(data.embedding), width = table.shape[1];
  const numbers = new Map(data.symbols.map((symbol, i) => [symbol, i]));
  return (tokens) => {
    const unknown = tokens.map((token) => !numbers.has(token));
    const vector = (token) => {
      const row = numbers.get(numbers.has(token) ? token : data.unknown);
      return table.values.subarray(row * width, (row + 1) * width);
    };
    return { unknown, weights: channelWeights(layer, tokens.map(vector)), n: layer.n };
  };
}

const counted = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0]);

export function show(page) {
  const { data } = page, read = reader(data), phase = data.layer?.phase ?? "equation";
  const unit = data.unit === "characters" ? "character" : "word";
  slider(page, "n", { label: "block n", min: 2, max: data.largest });
  const steps = slider(page, "step", { label: "step t", min: 1, max: data.most });
  textInput(page, "text", { label: "sentence" });
  let scene = null, lastText = null, found = {};
  const x = (t) => LEFT + (t - 0.5) * scene.across, y = (k) => TOP + (k - 0.3) * ROW;
  const picture = canvas(page, {
    height: 200,
    label: "",
    point,
    grab: (left) => scene && left > LEFT && { step: Math.min(scene.tokens.length, Math.ceil((left - LEFT) / scene.across)) },
    key(name) {
      const step = scene && stepped(name, Math.min(page.state.step, scene.tokens.length), 1, scene.tokens.length);
      return step && { step };
    },
  });

  function point(left, top) {
    if (!scene) return "";
    const t = Math.ceil((left - LEFT) / scene.across), k = Math.round((top - TOP) / ROW + 0.3);
    if (t < 1 || t > scene.tokens.length || k < 1 || k >= scene.n) return "";
    const m = Math.min(inDegree(t, k, scene.n, phase), t - 1), words = scene.tokens.slice(t - 1 - m, t).join(" ");
    const weight = scene.weights ? `, weight ${scene.weights[t - 1][k - 1].toFixed(2)}` : "";
    return `step ${t}, channel ${k}: “${words}”${weight}`;
  }

  function arrow(pen, from, to, k) {
    const height = y(k) - 12, middle = (x(from) + x(to)) / 2;
    pen.beginPath();
    pen.moveTo(x(from), height);
    pen.quadraticCurveTo(middle, height - 6 - 5 * (to - from), x(to), height);
    pen.lineTo(x(to) - 6, height - 7);
    pen.moveTo(x(to), height);
    pen.lineTo(x(to) - 1, height - 9);
    pen.stroke();
  }

  function drawChannel(pen, k, step) {
    const { n, tokens, weights, across } = scene, T = tokens.length, radius = Math.min(12, across / 2 - 2);
    pen.fillStyle = page.ink;
    pen.textAlign = "left";
    pen.fillText(`channel ${k}`, 4, y(k));
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, T * across, y(n));
    pen.clip();
    pen.strokeStyle = page.dark ? "#777" : "#aaa";
    pen.fillStyle = page.dark ? "#ffffff18" : "#00000010"; // darker where two links meet
    for (let begin = 1 - inDegree(1, k, n, phase); begin < T; begin += n - 1) { // the first may begin before the start
      pen.beginPath();
      pen.roundRect(x(begin) - radius - 3, y(k) - radius - 3, (n - 1) * across + 2 * radius + 6, 2 * radius + 6, 14);
      pen.fill();
      pen.stroke();
    }
    pen.restore();
    pen.textAlign = "center";
    for (let t = 1; t <= T; t++) {
      const fill = blues(weights ? weights[t - 1][k - 1] : 0, page.dark);
      pen.beginPath();
      pen.arc(x(t), y(k), radius, 0, 2 * Math.PI);
      pen.fillStyle = css(fill);
      pen.fill();
      pen.strokeStyle = t === step ? ORANGE : page.ink;
      pen.lineWidth = t === step ? 2 : 1;
      pen.stroke();
      pen.fillStyle = inkOn(fill);
      pen.fillText(inDegree(t, k, n, phase), x(t), y(k));
      pen.lineWidth = 1;
    }
    pen.strokeStyle = ORANGE;
    pen.lineWidth = 1.5;
    const m = Math.min(inDegree(step, k, n, phase), step - 1);
    for (let j = 1; j <= m; j++) arrow(pen, step - j, step, k);
    pen.lineWidth = 1;
  }

  function drawWords(pen, step) {
    const { n, tokens, unknown } = scene;
    pen.textAlign = "right";
    tokens.forEach((token, i) => {
      pen.save();
      pen.translate(x(i + 1) + 4, y(n) - 6);
      pen.rotate(-0.7);
      pen.fillStyle = page.ink;
      pen.font = `${i + 1 === step ? "bold " : ""}12px sans-serif`;
      pen.globalAlpha = unknown?.[i] ? 0.65 : 1;
      pen.fillText(token.length > 14 ? `${token.slice(0, 13)}…` : token.trim() || "␣", 0, 0);
      pen.restore();
    });
  }

  /** What stands in a circle, and what its blue means. */
  function drawLegend(pen, y) {
    pen.textAlign = "left";
    pen.fillText("in a circle: m of Eq. 1 (steps before the start count)", 4, y);
    if (!scene.weights) return;
    const x = 4;
    y += LEGEND;
    for (let i = 0; i < 80; i++) {
      pen.fillStyle = css(blues(i / 79, page.dark));
      pen.fillRect(x + 12 + i, y - 5, 1.5, 10);
    }
    pen.fillStyle = page.ink;
    pen.fillText("0", x, y);
    pen.fillText("1  weight of the channel", x + 98, y);
  }

  return ({ n, step, text }) => {
    const all = CUTS[data.unit](text), tokens = all.slice(0, data.most);
    if (text !== lastText) [lastText, found] = [text, read(tokens)];
    steps.max = Math.max(1, tokens.length);
    picture.resize(TOP + (n - 0.3) * ROW + BELOW + LEGEND * (data.layer ? 2 : 1),
      Math.max(NARROWEST, LEFT + 8 + APART * tokens.length));
    const { pen, width } = picture.begin();
    if (!tokens.length) {
      scene = null;
      picture.describe("no words");
      return "Type a sentence.";
    }
    step = Math.min(step, tokens.length);
    const across = Math.min(64, (width - LEFT - 8) / tokens.length), weights = found.n === n ? found.weights : null;
    scene = { n, tokens, across, weights, unknown: found.unknown };
    for (let k = 1; k < n; k++) drawChannel(pen, k, step);
    drawWords(pen, step);
    drawLegend(pen, TOP + (n - 0.3) * ROW + BELOW + LEGEND / 2);
    const counts = Array.from({ length: n - 1 }, (_, i) => Math.min(inDegree(step, i + 1, n, phase), step - 1));
    const each = n > 2 ? `1 ${unit} each` : `1 ${unit}`;
    const some = counts.every((one) => one === 1) ? each : `${listed(counts.map(String))} ${unit}s`;
    const before = step === 1 ? `no ${unit}` : some;
    const told = `Before “${tokens[step - 1]}” ${n > 2 ? `the ${n - 1} channels read` : "the one channel reads"} ${before}.`;
    picture.describe(`${counted(tokens.length, unit)} in ${n > 2 ? `${n - 1} channels` : "one channel"}. ${told}`);
    const missing = found.unknown?.filter(Boolean).length ?? 0;
    const grey = missing ? ` ${missing} in grey: not in the vocabulary.` : "";
    const notes = grey + (all.length > tokens.length ? ` Of ${all.length} ${unit}s only the first ${data.most} are shown.` : "");
    if (!weights) return told + (found.n ? ` The model's own n is ${found.n}: its weights are shown there.` : "") + notes;
    return `${told} Their weights: ${listed(weights[step - 1].map((one) => one.toFixed(2)))}.${notes}`;
  };
}
