// Who depends on whom: drag one input, and see which positions of three models change, layer by layer.
// Wang et al. (2019), R-Transformer, §3 and Figure 2.

import { colourBar, SERIES } from "./chart.js";
import { blues, css } from "./colours.js";
import { load, plant, read } from "./network.js";
import { canvas, make, stepped } from "./page.js";

const BARS = 92, ROW = 24, GAP = 30, LEGEND = 26; // pixels: the inputs, a layer, the room above a model, the legend
const EDGE = 14, LEFT = 124; // above and below the bars, for the handle; the room of the layers' names
const LONG = 2000; // pixels of the longest sentence in one line: the picture stays where it is
const FAINT = 1e-4; // the smallest change that has a colour of its own; white is exactly none

const STYLE = `
.rtx-page .stage { position: relative; }
.rtx-page .switch { position: absolute; left: 0; width: ${LEFT - 4}px; height: ${ROW - 3}px; min-height: 0; padding: 0 6px;
  font-size: 12px; line-height: 1; white-space: nowrap; text-align: left; }`;

/** What each layer of a model returns for a row of numbers; a layer that is off passes on what it gets. */
export function layers(model, values, off = []) {
  const tree = plant(values.map((value) => [value]));
  read(model, tree, [...values.keys()], { off });
  let rows = tree.rows.x;
  return model.layers.map(({ name }) => (rows = tree.rows[name] ?? rows));
}

/** How far each position of each layer moves when `values` become `others`: the distance of the two vectors. */
export function moved(model, values, others, off = []) {
  const before = layers(model, values, off), after = layers(model, others, off);
  return before.map((rows, i) => rows.map((one, t) => Math.hypot(...one.map((value, k) => value - after[i][t][k]))));
}

/** The models, which read numbers, and end with their last layer. */
export const loaded = ({ models, width }, bytes) =>
  models.map((model) => ({ ...load({ ...model, width, positions: "learned" }, bytes), head: (x) => x }));

export function show(page) {
  const { base } = page.data, models = loaded(page.data, page.weights), T = base.length;
  const rows = models.flatMap((model) => model.layers.map((layer) => ({ layer, model })));
  const top = (i) => BARS + GAP * (1 + models.indexOf(rows[i].model)) + ROW * i, height = top(rows.length - 1) + ROW + 8 + LEGEND;
  const clipped = (value) => Math.round(Math.max(-1, Math.min(1, value)) * 20) / 20;
  const yOf = (number) => EDGE + ((1 - number) / 2) * (BARS - 2 * EDGE), valueAt = (y) => clipped(1 - (2 * (y - EDGE)) / (BARS - 2 * EDGE));
  const positionAt = (x) => Math.min(T, Math.max(1, 1 + Math.floor((x - LEFT) / across)));
  const far = (value) => (value > 0 ? -0.8 : 0.8); // a value that differs much from what stands there
  let across = 1, table = [], pressed = false, from = 0;
  let last = "", shown = 1; // what was drawn, and how far the change has come: a drag follows the hand, all else travels

  const picture = canvas(page, {
    height,
    label: "",
    hint: "Drag an orange or grey bar; dots show its old value. Keys: ← → choose an input, ↑ ↓ change it.",
    point(x, y) {
      const i = rows.findIndex((_, k) => y >= top(k) && y < top(k) + ROW);
      if (i < 0 || x < LEFT || x >= LEFT + across * T) return "";
      const t = positionAt(x), size = table[i][t - 1];
      return `${rows[i].model.name}, ${rows[i].layer.text}, position ${t}: ${size ? `changes by ${size.toPrecision(2)}` : "no change"}`;
    },
    grab(x, y, first) {
      const { chosen } = page.state, here = positionAt(x);
      if (first) [pressed, from] = [y <= BARS && x >= LEFT, y];
      if (!pressed || (first && here === chosen)) return undefined;
      if (first) return { chosen: here, value: far(base[here - 1]) };
      return Math.abs(y - from) > 2 ? { value: valueAt(y) } : undefined;
    },
    key(name) {
      const { chosen, value } = page.state;
      if (name === "ArrowUp" || name === "ArrowDown") return { value: clipped(stepped(name, value, -1, 1, 0.05)) };
      const to = stepped(name, chosen, 1, T);
      return to && { chosen: to, value: far(base[to - 1]) };
    },
  });
  picture.element.style.touchAction = "none"; // a bar is dragged up and down
  const switches = rows.map(({ layer, model }, i) => {
    const element = make("button", { type: "button", className: "switch", title: `switch ${layer.text} on or off` });
    element.setAttribute("aria-label", `${model.name}: ${layer.text}`);
    element.onclick = () => {
      const { off } = page.state;
      page.set({ off: off.includes(layer.name) ? off.filter((name) => name !== layer.name) : [...off, layer.name] });
    };
    element.style.top = `${top(i)}px`;
    return element;
  });
  const stage = make("div", { className: "stage" }, make("style", { textContent: STYLE }));
  picture.element.replaceWith(stage);
  stage.append(picture.element, ...switches);
  const headline = stage.closest(".rtx-page").querySelector(".sentence");

  function drawInputs(pen, chosen, value) {
    const bar = (t, number) => [LEFT + t * across + 1.5, Math.min(yOf(0), yOf(number)), across - 3, Math.max(2, Math.abs(yOf(number) - yOf(0)))];
    pen.strokeStyle = page.faint;
    pen.strokeRect(LEFT, yOf(0), across * T, 0);
    base.forEach((number, t) => {
      const here = t + 1 === chosen;
      pen.fillStyle = here ? SERIES[1] : page.faint;
      pen.fillRect(...bar(t, here ? value : number));
      if (!here) return;
      pen.beginPath();
      pen.arc(LEFT + (t + 0.5) * across, yOf(value), Math.min(9, across / 2 + 1), 0, 2 * Math.PI);
      pen.fill();
      pen.strokeStyle = page.ink;
      pen.stroke();
      pen.setLineDash([2, 2]);
      pen.strokeRect(...bar(t, number));
      pen.setLineDash([]);
    });
  }

  /** How dark a change is shown, from 0 to 1: by its logarithm, and never quite white. */
  const shade = (size) => size && Math.max(0.08, 1 - Math.log(Math.min(1, Math.max(FAINT, size))) / Math.log(FAINT));

  function square(pen, x, y, share) {
    pen.fillStyle = css(blues(share, page.dark));
    pen.fillRect(x, y, across - 2, ROW - 3);
    pen.strokeRect(x, y, across - 2, ROW - 3);
  }

  /** The layers, as far as the change has come: `share` of them from the top, and in a recurrent one of its positions. */
  function draw({ chosen, value, off }, share) {
    const { pen, width } = picture.begin();
    headline.style.minHeight = `${Math.ceil(LONG / width)}lh`;
    across = (width - LEFT - 2) / T;
    drawInputs(pen, chosen, value);
    pen.fillStyle = page.ink;
    pen.fillText("drag a bar", 4, BARS / 2);
    pen.font = "600 14px system-ui, sans-serif";
    for (const model of models) pen.fillText(model.name, 2, top(rows.findIndex((one) => one.model === model)) - 13);
    pen.strokeStyle = page.faint;
    rows.forEach(({ layer }, i) => {
      const come = share * (rows.length + 3) - i, away = off.includes(layer.name);
      pen.globalAlpha = away ? 0.35 : 1;
      for (let t = 0; t < T; t++) {
        const there = !away && come > 0 && (t + 1 - chosen) / T < come / 3;
        square(pen, LEFT + t * across + 1, top(i), there ? shade(table[i][t]) : 0);
      }
    });
    pen.globalAlpha = 1;
    pen.font = "13px system-ui, sans-serif";
    colourBar(pen, page, 4, height - LEGEND / 2, (one) => blues(shade(FAINT ** (1 - one)), page.dark), "a change of 0.0001", "1; empty: none");
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
  const reach = (model) => reached(model).length;
  const CHALLENGES = [
    ["switch off one layer of LocalRNN, so that its change ends after 4 positions.", ({ chosen }) => chosen < T - 3 && reach(local) === 4],
    ["make the change end in the R-Transformer just where it ends in LocalRNN.",
      ({ chosen }) => chosen + reach(blocks) <= T && reach(blocks) === reach(local)],
    ["switch off two layers of the R-Transformer, so that attention sees the change, but the last position gets more than 3 % of it.",
      ({ chosen, off }) => off.length === 2 && reach(blocks) === T - chosen + 1 && outputs(blocks)[T - 1] / outputs(blocks)[chosen - 1] > 0.03],
    ["make every position but the changed one stay as it was, in the R-Transformer.", () => reach(blocks) === 1],
  ];

  /** The next challenge; one that is met makes room for the next. */
  function challenge(state) {
    const [text, met] = CHALLENGES[state.solved] ?? ["", () => false];
    task.textContent = text ? `Challenge ${state.solved + 1} of ${CHALLENGES.length}: ${text}` : "All challenges are met.";
    if (text && met(state)) setTimeout(() => page.set({ solved: state.solved + 1 }));
  }

  return (state) => {
    const { chosen, value, off } = state, changed = base.map((number, t) => (t + 1 === chosen ? value : number));
    table = models.flatMap((model) => moved(model, base, changed, off));
    switches.forEach((element, i) => {
      const away = off.includes(rows[i].layer.name);
      element.setAttribute("aria-pressed", String(!away));
      element.textContent = `${away ? "☐" : "☑"} ${rows[i].layer.text}`;
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
