// Who depends on whom: drag one input, and see which positions of three models change, layer by layer.
// Wang et al. (2019), R-Transformer, §3 and Figure 2.

import { blues, css } from "./colours.js";
import { canvas, make, stepped } from "./page.js";
import { add, attend, layerNorm, linear, matrix, readTensors, recurrent, relu, row, stack } from "./tensor.js";

const BARS = 92, ROW = 24, GAP = 30, LEGEND = 26; // pixels: the inputs, a layer, the room above a model, the legend
const EDGE = 14; // above and below the bars, for the handle
const FAINT = 1e-4; // the smallest change that has a colour of its own; white is exactly none

/** A sublayer's output for x, in a residual connection with its LayerNorm behind it, Eq. (8). */
function sublayer({ kind, prefix, norm, heads, window, layer }, x, weights) {
  const of = (name) => weights[`${prefix}.${name}`];
  if (kind === "rnn") return recurrent(x, weights, prefix, { cell: "rnn", layer });
  let y;
  if (kind === "local") y = recurrent(x, weights, `${prefix}.`, { window });
  if (kind === "attention") {
    const [q, k, v] = ["query", "key", "value"].map((name) => linear(x, of(`${name}.weight`)));
    const rows = ({ rows: T, ...all }) => Array.from({ length: T }, (_, t) => row(all, t)), [keys, values] = [k, v].map(rows);
    const mixed = rows(q).map((query, t) => attend(query, keys.slice(0, t + 1), values.slice(0, t + 1), heads).mixed);
    y = linear(stack(mixed), of("output.weight"));
  }
  if (kind === "feed-forward")
    y = linear(relu(linear(x, of("expand.weight"), of("expand.bias"))), of("contract.weight"), of("contract.bias"));
  return layerNorm(add(x, y), weights[`${norm}.weight`], weights[`${norm}.bias`]);
}

/** What each layer returns for a row of numbers; a layer that is off passes on what it gets. */
export function layers(model, weights, values, off) {
  let x = linear(matrix(values.length, 1, Float64Array.from(values)), weights["embed.weight"]);
  x = add(x, { ...x, values: weights.places.values });
  return model.layers.map((layer) => (x = off.includes(layer.name) ? x : sublayer(layer, x, weights)));
}

/** How far each position of each layer moves when `values` become `others`: the distance of the two vectors. */
export function moved(model, weights, values, others, off) {
  const [before, after] = [values, others].map((given) => layers(model, weights, given, off));
  return before.map((one, i) => values.map((_, t) => Math.hypot(...row(one, t).map((value, k) => value - row(after[i], t)[k]))));
}

export function show(page) {
  const { base, models } = page.data, weights = readTensors(page.weights), T = base.length;
  const rows = models.flatMap((model) => model.layers.map((layer) => ({ layer, model })));
  const top = (i) => BARS + GAP * (1 + models.indexOf(rows[i].model)) + ROW * i;
  const height = top(rows.length - 1) + ROW + 8 + LEGEND;
  let left = 0, across = 0, table = [], pressed = false, from = 0;

  const valueAt = (y) => Math.round(Math.max(-1, Math.min(1, 1 - (2 * (y - EDGE)) / (BARS - 2 * EDGE))) * 20) / 20;
  const positionAt = (x) => Math.min(T, Math.max(1, 1 + Math.floor((x - left) / across)));
  let last = "", shown = 1; // what was drawn, and how far the change has come: a drag follows the hand, all else travels

  const picture = canvas(page, {
    height,
    label: "",
    hint: "Drag an orange or grey bar. Keys: ← → choose an input, ↑ ↓ change it. Point at a square for its number.",
    point(x, y) {
      const i = rows.findIndex((_, k) => y >= top(k) && y < top(k) + ROW);
      if (i < 0 || x < left || x >= left + across * T) return "";
      const t = positionAt(x);
      return `${rows[i].model.name}, ${rows[i].layer.text}, position ${t}: ${table[i][t - 1] ? `changes by ${table[i][t - 1].toPrecision(2)}` : "no change"}`;
    },
    grab(x, y, first) {
      const { chosen } = page.state, here = positionAt(x);
      if (first) [pressed, from] = [y <= BARS && x >= left, y];
      if (!pressed || (first && here === chosen)) return undefined;
      if (first) return { chosen: here, value: far(base[here - 1]) };
      return Math.abs(y - from) > 2 ? { value: valueAt(y) } : undefined;
    },
    key(name) {
      const { chosen, value } = page.state;
      if (name === "ArrowUp" || name === "ArrowDown") return { value: Math.round(stepped(name, value, -1, 1, 0.05) * 20) / 20 };
      const to = stepped(name, chosen, 1, T);
      return to && { chosen: to, value: far(base[to - 1]) };
    },
  });
  picture.element.style.touchAction = "none"; // a bar is dragged up and down
  const switches = rows.map(({ layer, model }, i) => {
    const element = make("button", { type: "button", textContent: layer.text, title: `switch ${layer.text} on or off` });
    element.setAttribute("aria-label", `${model.name}: ${layer.text}`);
    element.onclick = () => {
      const { off } = page.state;
      page.set({ off: off.includes(layer.name) ? off.filter((name) => name !== layer.name) : [...off, layer.name] });
    };
    Object.assign(element.style, { position: "absolute", left: 0, top: `${top(i)}px`, height: `${ROW - 3}px`, minHeight: 0,
      padding: "0 6px", fontSize: "12px", lineHeight: 1, whiteSpace: "nowrap", overflow: "hidden", textAlign: "left" });
    return element;
  });
  const stage = make("div");
  stage.style.position = "relative";
  picture.element.replaceWith(stage);
  stage.append(picture.element, ...switches);

  /** How dark a change is shown: by its logarithm, and never quite white. */
  const shade = (size) => (size ? Math.max(0.08, 1 - Math.log(Math.min(1, Math.max(FAINT, size))) / Math.log(FAINT)) : 0);
  const far = (value) => (value > 0 ? -0.8 : 0.8); // a value that differs much from what stands there

  function drawInputs(pen, chosen, value) {
    const y = (number) => EDGE + ((1 - number) / 2) * (BARS - 2 * EDGE);
    pen.strokeStyle = page.faint;
    pen.strokeRect(left, y(0), across * T, 0);
    base.forEach((number, t) => {
      const x = left + t * across, here = t + 1 === chosen, shown = here ? value : number;
      pen.fillStyle = here ? css([222, 143, 5]) : page.faint;
      pen.fillRect(x + 1.5, Math.min(y(0), y(shown)), across - 3, Math.max(2, Math.abs(y(shown) - y(0))));
      if (!here) return;
      pen.beginPath();
      pen.arc(x + across / 2, y(value), Math.min(9, across / 2 + 1), 0, 2 * Math.PI);
      pen.fill();
      pen.strokeStyle = page.ink;
      pen.stroke();
      pen.setLineDash([2, 2]);
      pen.strokeRect(x + 1.5, Math.min(y(0), y(number)), across - 3, Math.abs(y(number) - y(0)));
      pen.setLineDash([]);
    });
  }

  /** The layers, as far as the change has come: `share` of them from the top, and in a recurrent one of its positions. */
  function draw({ chosen, value, off }, share) {
    const { pen, width } = picture.begin();
    left = width < 560 ? 108 : 132;
    across = (width - left - 2) / T;
    drawInputs(pen, chosen, value);
    pen.fillStyle = page.ink;
    pen.fillText("drag a bar", 4, BARS / 2);
    models.forEach((model) => {
      pen.font = "600 14px system-ui, sans-serif";
      pen.fillStyle = page.ink;
      pen.fillText(model.name, 2, top(rows.findIndex((one) => one.model === model)) - 13);
    });
    rows.forEach(({ layer }, i) => {
      const come = share * (rows.length + 3) - i, away = off.includes(layer.name);
      pen.globalAlpha = away ? 0.35 : 1;
      for (let t = 0; t < T; t++) {
        const size = away ? 0 : table[i][t], there = come > 0 && (t + 1 - chosen) / T < come / 3;
        pen.fillStyle = css(blues(there ? shade(size) : 0, page.dark));
        pen.fillRect(left + t * across + 1, top(i), across - 2, ROW - 3);
        pen.strokeStyle = page.faint;
        pen.strokeRect(left + t * across + 1, top(i), across - 2, ROW - 3);
      }
      pen.globalAlpha = 1;
    });
    drawLegend(pen, height - LEGEND / 2);
  }

  /** What the colours mean: tenfold from one to the next. */
  function drawLegend(pen, y) {
    const sizes = [0, 1e-4, 1e-3, 1e-2, 0.1, 1], texts = ["no change", "0.0001", "0.001", "0.01", "0.1", "1"];
    const step = Math.min(84, (across * T + left - 90) / 5.2);
    pen.font = "12px system-ui, sans-serif";
    sizes.forEach((size, i) => {
      const x = i ? 96 + (i - 1) * step : 2;
      pen.fillStyle = css(blues(shade(size), page.dark));
      pen.fillRect(x, y - 7, 14, 14);
      pen.strokeStyle = page.faint;
      pen.strokeRect(x, y - 7, 14, 14);
      pen.fillStyle = page.ink;
      pen.fillText(texts[i], x + 19, y, i ? step - 22 : 72);
    });
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

  const [, local, blocks] = models, task = make("p");
  task.setAttribute("aria-live", "polite");
  page.picture(task);
  const last4 = (model) => reached(model).length;
  const CHALLENGES = [
    ["switch off one layer of LocalRNN, so that its change ends after 4 positions.", ({ chosen }) => chosen < T - 3 && last4(local) === 4],
    ["make the change end in the R-Transformer just where it ends in LocalRNN.", ({ chosen }) => chosen < T - 6 && last4(blocks) === 7],
    ["switch off two layers of the R-Transformer, so that attention sees the change, but the last position gets more than 3 % of it.",
      ({ chosen, off }) => off.length === 2 && last4(blocks) === T - chosen + 1 && outputs(blocks)[T - 1] / outputs(blocks)[chosen - 1] > 0.03],
    ["make every position but the changed one stay as it was, in the R-Transformer.", () => last4(blocks) === 1],
  ];

  /** The next challenge; one that is met makes room for the next. */
  function challenge(state) {
    const [text, met] = CHALLENGES[state.solved] ?? ["", () => false];
    task.textContent = text ? `Challenge ${state.solved + 1} of ${CHALLENGES.length}: ${text}` : "All challenges are met.";
    if (text && met(state)) setTimeout(() => page.set({ solved: state.solved + 1 }));
  }

  return (state) => {
    const { chosen, value, off } = state, changed = base.map((number, t) => (t + 1 === chosen ? value : number));
    table = models.flatMap((model) => moved(model, weights, base, changed, off));
    switches.forEach((element, i) => {
      const away = off.includes(rows[i].layer.name);
      element.setAttribute("aria-pressed", String(!away));
      element.textContent = `${away ? "☐" : "☑"} ${rows[i].layer.text}`;
      element.style.width = `${(picture.element.clientWidth || 720) < 560 ? 104 : 126}px`;
    });
    const now = JSON.stringify([chosen, off]), travels = last && now !== last;
    last = now;
    shown = travels ? 0 : shown;
    if (travels) page.animate(500, (share) => draw(page.state, (shown = share)));
    else draw(state, shown);
    const by = value - base[chosen - 1], what = `Input ${chosen} is changed by ${by < 0 ? "−" : "+"}${Math.abs(by).toFixed(2)}. Which outputs change?`;
    const text = `${what} ${models.map(told).join(" ")}`;
    picture.describe(`${text} Left and right choose the input, up and down change it.`);
    challenge(state);
    return text;
  };
}
