// MC-RNN's channels: a sentence, its blocks in every channel, and the weights of a layer computed here.
// Xu et al. (2019), Eq. 1-6.
import { colourBar, SERIES } from "./chart.js";
import { blues, css, inkOn } from "./colours.js";
import { arrows, canvas, slider, textInput } from "./page.js";
import { CELLS, linear, readTensors, softmax } from "./tensor.js";

const ROW = 44, TOP = 26, LEFT = 84, BELOW = 84, LEGEND = 22; // of the picture, in CSS pixels
const APART = 18, NARROWEST = 340; // the least from token to token, and of the picture, for its legend

// As CUTS of vocabulary.py.
const ended = (text) => text.replaceAll("\n", " <eos> ");
const CUTS = {
  characters: (text) => [...text],
  words: (text) => ended(text).split(/\s+/).filter(Boolean),
  "words and marks": (text) => ended(text).match(/<unk>|<eos>|[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]/gu) ?? [],
};

/** m_t^k, Eq. (1): predecessors of step t in channel k, both from 1. */
const inDegree = (t, k, n) => ((t - k - 1 + n * (n - 1)) % (n - 1)) + 1;

/** The channel weights α of a layer, for each of its `inputs`. */
function channelWeights({ n, cell }, weights, inputs) {
  const H = inputs[0]?.length, channels = Array.from({ length: n - 1 }, () => []); // the states of each, step after step
  const times = (vector, name, bias) => linear(vector, weights[name], weights[bias]);
  const mapped = (h, j) => linear(h, { shape: [H, H], values: weights.weight_block.values.subarray(j * H * H) });
  const mean = (vectors, count) => Float64Array.from({ length: H }, (_, i) => vectors.reduce((sum, one) => sum + one[i], 0) / count);
  return inputs.map((x, i) => {
    const read = times(x, "weight_ih_l0", "bias_ih_l0"), scores = channels.map((states, k) => {
      const m = inDegree(i + 1, k + 1, n), back = states.slice(-m).reverse(); // states before the start are zeros
      const s = mean(back.map(({ h }, j) => mapped(h, j)), m), c = mean(back.map((one) => one.c), m); // Eq. (2)
      CELLS[cell](read, times(s, "weight_hh_l0", "bias_hh_l0"), s, c); // Eq. (3): s becomes h
      states.push({ h: s, c });
      return times(times([...s, ...x], "attention_v.weight").map(Math.tanh), "attention_r.weight")[0]; // Eq. (6)
    });
    return softmax(scores); // Eq. (5)
  });
}

/** A sentence as the model reads it: weights for each of its tokens, and which of them it does not know. */
function reader({ layer, symbols }, bytes) {
  if (!layer) return () => ({});
  const weights = readTensors(bytes), { shape: [, H], values } = weights["embedding.weight"];
  const numbers = new Map(symbols.map((symbol, i) => [symbol, i]));
  return (tokens) => {
    const found = tokens.map((token) => numbers.get(token) ?? numbers.get("<unk>"));
    const inputs = found.map((number) => values.subarray(number * H, (number + 1) * H));
    return { unknown: tokens.map((token) => !numbers.has(token)), weights: channelWeights(layer, weights, inputs) };
  };
}

const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0]);

export function show(page) {
  const { data } = page, { layer, unit, largest, most } = data, read = reader(data, page.weights);
  const thing = unit === "characters" ? "character" : "word";
  slider(page, "n", { label: "block n", min: 2, max: largest });
  const steps = slider(page, "step", { label: "step t", min: 1, max: most });
  textInput(page, "text", { label: "sentence" });
  let tokens = [], n = 2, across = 1, weights = null, lastText = null, found = {};
  const x = (t) => LEFT + (t - 0.5) * across, y = (k) => TOP + (k - 0.3) * ROW;
  const seen = (t, k) => Math.min(inDegree(t, k, n), t - 1); // how many steps before t channel k joins there
  const picture = canvas(page, {
    height: 200,
    label: "",
    point(left, top) {
      const t = Math.ceil((left - LEFT) / across), k = Math.round((top - TOP) / ROW + 0.3);
      if (t < 1 || t > tokens.length || k < 1 || k >= n) return "";
      const weight = weights ? `, weight ${weights[t - 1][k - 1].toFixed(2)}` : "";
      return `step ${t}, channel ${k}: “${tokens.slice(t - 1 - seen(t, k), t).join(" ")}”${weight}`;
    },
    grab: (left) => tokens.length && left > LEFT && { step: Math.min(tokens.length, Math.ceil((left - LEFT) / across)) },
    key: (name) => tokens.length && arrows(name, ["step", Math.min(page.state.step, tokens.length), 1, tokens.length]),
  });

  /** A channel's blocks, as links of a chain that meet in the last step of one and the first of the next. */
  function drawBlocks(pen, k, radius) {
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, tokens.length * across, y(n));
    pen.clip();
    Object.assign(pen, { strokeStyle: page.dark ? "#777" : "#aaa", lineWidth: 1 });
    pen.fillStyle = page.dark ? "#ffffff18" : "#00000010"; // darker where two links meet
    for (let begin = 1 - inDegree(1, k, n); begin < tokens.length; begin += n - 1) { // the first may begin before the start
      pen.beginPath();
      pen.roundRect(x(begin) - radius - 3, y(k) - radius - 3, (n - 1) * across + 2 * radius + 6, 2 * radius + 6, 14);
      pen.fill();
      pen.stroke();
    }
    pen.restore();
  }

  function drawChannel(pen, k, step) {
    const radius = Math.min(12, across / 2 - 2);
    pen.textAlign = "left";
    pen.fillText(`channel ${k}`, 4, y(k));
    drawBlocks(pen, k, radius);
    pen.textAlign = "center";
    tokens.forEach((_, i) => {
      const t = i + 1, fill = blues(weights ? weights[i][k - 1] : 0, page.dark);
      pen.beginPath();
      pen.arc(x(t), y(k), radius, 0, 2 * Math.PI);
      pen.fillStyle = css(fill);
      pen.fill();
      Object.assign(pen, { strokeStyle: t === step ? SERIES[1] : page.ink, lineWidth: t === step ? 2 : 1 });
      pen.stroke();
      pen.fillStyle = inkOn(fill);
      pen.fillText(inDegree(t, k, n), x(t), y(k));
    });
    Object.assign(pen, { fillStyle: page.ink, strokeStyle: SERIES[1], lineWidth: 1.5 });
    for (let j = 1; j <= seen(step, k); j++) { // an arc from each state that the chosen one reads
      pen.beginPath();
      pen.moveTo(x(step - j), y(k) - 12);
      pen.quadraticCurveTo(x(step - j / 2), y(k) - 18 - 5 * j, x(step), y(k) - 12);
      pen.stroke();
    }
  }

  function drawWords(pen, step) {
    pen.textAlign = "right";
    tokens.forEach((token, i) => {
      pen.save();
      pen.translate(x(i + 1) + 4, y(n) - 6);
      pen.rotate(-0.7);
      pen.font = `${i + 1 === step ? "bold " : ""}12px sans-serif`;
      pen.globalAlpha = found.unknown?.[i] ? 0.65 : 1;
      pen.fillText(token.length > 14 ? `${token.slice(0, 13)}…` : token.trim() || "␣", 0, 0);
      pen.restore();
    });
  }

  /** What is seen, in words. */
  function told(step, left) {
    const counts = Array.from({ length: n - 1 }, (_, i) => seen(step, i + 1)), missing = found.unknown?.filter(Boolean).length;
    return [
      `Number of ${thing}s that the channels read before “${tokens[step - 1]}”: ${listed(counts)}.`,
      weights && `Their weights: ${listed(Array.from(weights[step - 1], (weight) => weight.toFixed(2)))}.`,
      layer && !weights && `The model's own n is ${layer.n}: its weights are shown there.`,
      missing && `${missing} in grey: not in the vocabulary.`,
      left && `Of ${tokens.length + left} ${thing}s only the first ${most} are shown.`,
    ].filter(Boolean).join(" ");
  }

  return (state) => {
    const all = CUTS[unit](state.text);
    [n, tokens] = [state.n, all.slice(0, most)];
    if (state.text !== lastText) [lastText, found] = [state.text, read(tokens)];
    steps.max = Math.max(1, tokens.length);
    const bottom = TOP + (n - 0.3) * ROW + BELOW;
    picture.resize(bottom + LEGEND * (layer ? 2 : 1), Math.max(NARROWEST, LEFT + 8 + APART * tokens.length));
    const { pen, width } = picture.begin(), step = Math.min(state.step, tokens.length);
    if (!step) return "Type a sentence.";
    [across, weights] = [Math.min(64, (width - LEFT - 8) / tokens.length), layer?.n === n ? found.weights : null];
    for (let k = 1; k < n; k++) drawChannel(pen, k, step);
    drawWords(pen, step);
    pen.textAlign = "left";
    pen.fillText("in a circle: m of Eq. 1 (steps before the start count)", 4, bottom + LEGEND / 2);
    if (weights) colourBar(pen, page, 4, bottom + 1.5 * LEGEND, (share) => blues(share, page.dark), "0", "1  weight of the channel");
    const text = told(step, all.length - tokens.length);
    picture.describe(text);
    return text;
  };
}
