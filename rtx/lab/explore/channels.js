// MC-RNN's channels: a sentence, its blocks in every channel, and the weights of a layer computed here.
// Xu et al. (2019), Eq. 1-6.
import { SERIES } from "./chart.js";
import { blues, shaded } from "./colours.js";
import { make, printed, slider, table, textInput } from "./page.js";
import { CELLS, linear, readTensors, softmax } from "./tensor.js";

const STYLE = `
.rtx-page .channels tr:first-child th { height: 96px; padding-top: 4px;
  writing-mode: vertical-rl; transform: rotate(180deg); text-align: start; vertical-align: middle; }
.rtx-page .channels th:first-child { position: sticky; left: 0; z-index: 1; background: #fff; }
.rtx-page.dark .channels th:first-child { background: #17191c; }
.rtx-page .channels + .caption { position: sticky; left: 0; }
.rtx-page .channels td { cursor: pointer; }
.rtx-page .channels .first { box-shadow: inset 2px 0 var(--rtx-ink); }
.rtx-page .channels .read { outline: 2px dotted ${SERIES[1]}; outline-offset: -3px; }
.rtx-page .channels .here { outline: 3px solid ${SERIES[1]}; outline-offset: -3px; }`;
const LEGEND = "A number says how many earlier states a state reads (m of Eq. 1; states before the start count). A line " +
  "comes after a state that ends one block and begins the next. Dotted: what the chosen step reads.";

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

export function show(page) {
  const { data } = page, { layer, unit, largest, most } = data, read = reader(data, page.weights);
  const thing = unit === "characters" ? "character" : "word";
  slider(page, "n", { label: "block n", min: 2, max: largest });
  const steps = slider(page, "step", { label: "step t", min: 1, max: most });
  textInput(page, "text", { label: "sentence" });
  let tokens = [], n = 2, weights = null, lastText = null, found = {};
  const legend = make("p", { className: "caption" });
  const seen = (t, k) => Math.min(inDegree(t, k, n), t - 1); // how many steps before t channel k joins there
  const picture = make("div", { className: "channels", onpointerleave: () => page.note("") });
  page.style(STYLE);
  page.show(picture, legend);

  /** A cell of step t in channel k, both from 1. */
  function cell(t, k, step) {
    const weight = weights?.[t - 1][k - 1] ?? 0, m = inDegree(t, k, n);
    const block = `step ${t}, channel ${k}: “${tokens.slice(t - 1 - seen(t, k), t).join(" ")}”`;
    return {
      textContent: m,
      style: shaded(blues(weight, page.dark)),
      className: `${m === 1 ? "first" : ""} ${t === step ? "here" : t < step && t >= step - seen(step, k) ? "read" : ""}`,
      onclick: () => page.set({ step: t }),
      onpointerenter: () => page.note(weights ? `${block}, weight ${weight.toFixed(2)}` : block),
    };
  }

  /** What is seen, in words. */
  function told(step, left) {
    const counts = Array.from({ length: n - 1 }, (_, i) => seen(step, i + 1)), missing = found.unknown?.filter(Boolean).length;
    return [
      `Before “${tokens[step - 1]}”, ${counts.map((m, i) => `channel ${i + 1} reads ${m}`).join(", ")} ${thing}${counts.at(-1) === 1 ? "" : "s"}.`,
      weights && `Their weights: ${Array.from(weights[step - 1], (weight) => weight.toFixed(2)).join(", ")}.`,
      layer && !weights && `The model's own n is ${layer.n}: its weights are shown there.`,
      missing && `${missing} in brackets: not in the vocabulary.`,
      left && `Of ${tokens.length + left} ${thing}s only the first ${most} are shown.`,
    ].filter(Boolean).join(" ");
  }

  return (state) => {
    const all = CUTS[unit](state.text);
    [n, tokens] = [state.n, all.slice(0, most)];
    if (state.text !== lastText) [lastText, found] = [state.text, read(tokens)];
    steps.max = Math.max(1, tokens.length);
    weights = layer?.n === n ? found.weights : null;
    const step = Math.min(Math.max(1, state.step), tokens.length);
    const words = tokens.map((token, i) => (found.unknown?.[i] ? `(${token})` : printed(token)));
    const rows = Array.from({ length: n - 1 }, (_, i) => [`channel ${i + 1}`, tokens.map((_, t) => t + 1)]);
    picture.replaceChildren(...(step ? [table(words, rows, (t, i) => cell(t, i + 1, step))] : []));
    legend.textContent = LEGEND + (weights ? " The bluer a cell, the larger the weight of its channel." : "");
    page.note(""); // the cell under the pointer may be another now
    const here = picture.querySelector("td.here"), box = picture.parentElement;
    if (here) box.scrollLeft = here.offsetLeft - box.clientWidth / 2; // where the table is wider than the page
    return step ? told(step, all.length - tokens.length) : "Type a sentence.";
  };
}
