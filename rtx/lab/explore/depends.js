// Who depends on whom: drag one input, and see which positions of three models change, layer by layer.
// Wang et al. (2019), R-Transformer, §3 and Figure 2.

import { blues, css, inkOn } from "./colours.js";
import { canvas, make, stepped } from "./page.js";
import { add, attend, layerNorm, linear, matrix, readTensors, recurrent, relu, row } from "./tensor.js";

const BARS = 84, ROW = 24, GAP = 30; // pixels: the inputs, a layer with its margin, and the room above a model
const FAINT = 1e-4; // the smallest change that has a colour of its own; white is exactly none

/** A sublayer's output for x, in a residual connection with its LayerNorm behind it, Eq. (8). */
function sublayer({ kind, prefix, norm, heads, window, layer }, x, weights) {
  const of = (name) => weights[`${prefix}.${name}`];
  if (kind === "rnn") return recurrent(x, weights, prefix, { cell: "rnn", layer });
  let y;
  if (kind === "local") y = recurrent(x, weights, `${prefix}.`, { window });
  if (kind === "attention") {
    const [q, k, v] = ["query", "key", "value"].map((name) => linear(x, of(`${name}.weight`)));
    y = linear(attend(q, k, v, heads).mixed, of("output.weight"));
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
  const height = top(rows.length - 1) + ROW + 8;
  let left = 0, across = 0, table = [];

  const valueAt = (y) => Math.round(Math.max(-1, Math.min(1, 1 - (2 * (y - 8)) / (BARS - 16))) * 20) / 20;
  const positionAt = (x) => Math.min(T, Math.max(1, 1 + Math.floor((x - left) / across)));
  let last = ""; // what was drawn: a drag follows the hand, all else travels through the layers

  const picture = canvas(page, {
    height,
    label: "",
    point(x, y) {
      const i = rows.findIndex((_, k) => y >= top(k) && y < top(k) + ROW);
      if (i < 0 || x < left || x >= left + across * T) return "";
      const t = positionAt(x);
      return `${rows[i].model.name}, ${rows[i].layer.text}, position ${t}: moves by ${table[i][t - 1].toPrecision(2)}`;
    },
    grab(x, y, first) {
      if (first) return y > BARS || x < left ? undefined : { chosen: positionAt(x), value: valueAt(y) };
      return { value: valueAt(y) };
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

  const far = (value) => (value > 0 ? -0.8 : 0.8); // a value that differs much from what stands there

  function drawInputs(pen, chosen, value) {
    const y = (number) => 8 + ((1 - number) / 2) * (BARS - 16);
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
    left = width < 560 ? 96 : 132;
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
        const size = table[i][t], there = come > 0 && (t + 1 - chosen) / T < come / 3;
        const strength = size && there ? Math.max(0.08, 1 - Math.log(Math.min(1, Math.max(FAINT, size))) / Math.log(FAINT)) : 0;
        const colour = blues(strength, page.dark);
        pen.fillStyle = css(colour);
        pen.fillRect(left + t * across + 1, top(i), across - 2, ROW - 3);
        pen.strokeStyle = page.faint;
        pen.strokeRect(left + t * across + 1, top(i), across - 2, ROW - 3);
        if (strength && t + 1 === chosen) {
          pen.fillStyle = inkOn(colour);
          pen.fillRect(left + (t + 0.5) * across - 2, top(i) + ROW / 2 - 3.5, 4, 4);
        }
      }
      pen.globalAlpha = 1;
    });
  }

  /** What moves at the end of a model, in words. */
  function told(model, chosen) {
    const end = table[rows.findLastIndex((one) => one.model === model)], places = end.flatMap((size, t) => (size ? [t + 1] : []));
    if (!places.length) return `${model.name}: nothing.`;
    const largest = Math.max(...end), first = places[0], final = places.at(-1);
    const range = first === final ? `position ${first}` : `positions ${first} to ${final}`;
    const rest = final < T ? "and no other" : `the last by ${((100 * end[T - 1]) / largest).toPrecision(2)} % of the largest move`;
    return `${model.name}: ${range}${final < T || first === final ? ` ${rest}` : `, ${rest}`}.`;
  }

  return (state) => {
    const { chosen, value, off } = state, changed = base.map((number, t) => (t + 1 === chosen ? value : number));
    table = models.flatMap((model) => moved(model, weights, base, changed, off));
    switches.forEach((element, i) => {
      const away = off.includes(rows[i].layer.name);
      element.setAttribute("aria-pressed", String(!away));
      element.style.textDecoration = away ? "line-through" : "";
      element.style.width = `${(picture.element.clientWidth || 720) < 560 ? 92 : 126}px`;
    });
    const now = JSON.stringify([chosen, off]), travels = last && now !== last;
    last = now;
    if (travels) page.animate(700, (share) => draw(state, share));
    else draw(state, 1);
    const by = value - base[chosen - 1], what = `Input ${chosen} is changed by ${by < 0 ? "−" : "+"}${Math.abs(by).toFixed(2)}. What moves?`;
    const text = `${what} ${models.map((model) => told(model, chosen)).join(" ")}`;
    picture.describe(`${text} Left and right choose the input, up and down change it.`);
    return text;
  };
}
