// A recording: panels that follow a few controls. Python has computed what is seen at every setting (recording.py).
// It may grow while it is seen. A control whose state is not among its values shows the nearest number, or the last text.

import { select, slider } from "./page.js";
import { board, closest } from "./panels.js";

/** A part of the pool: of a table that Python's `packed` wrote, its rows. */
function unpack(part) {
  if (!part?.steps) return part;
  const { shape: [rows, columns], low, high, steps } = part;
  const values = Array.from(atob(steps), (letter) => low + (letter.charCodeAt(0) * (high - low)) / 255);
  return Array.from({ length: rows }, (_, i) => values.slice(i * columns, (i + 1) * columns));
}

export function show(page) {
  let data = null, pool = [];
  const values = (name) => page.data.controls[name]?.values ?? [];
  const place = (name) => {
    const all = values(name), wanted = page.state[name], found = all.indexOf(wanted);
    if (found >= 0) return found;
    return typeof wanted === "number" ? all.indexOf(closest(all, (one) => Math.abs(one - wanted))) : all.length - 1;
  };
  const move = (name, to) => ({ [name]: values(name)[to] });

  const made = {}; // the controls by name: each its input, and what is around it
  function addControl(name, { label, texts, seconds }) {
    let whole;
    const places = { // a page on which the value of a control is the place of a value of ours
      set: (to) => page.set(move(name, to[name])),
      announce: page.announce,
      control: (_, put, element) => page.control(name, () => put(place(name)), (whole = element)),
    };
    const text = (i) => String(values(name)[i]);
    const input = texts.length
      ? select(places, name, { label, options: texts.map((one, i) => [i, one]) })
      : slider(places, name, { label, max: 1, text, seconds });
    made[name] = { input, whole };
  }
  const picture = board(page, { high: 156, label: "panels of the recording", values, place, move });

  return () => {
    if (data !== page.data) {
      data = page.data;
      pool = data.pool.map(unpack);
    }
    for (const [name, control] of Object.entries(data.controls)) if (!made[name]) addControl(name, control);
    for (const [name, { input, whole }] of Object.entries(made)) {
      input.max = values(name).length - 1;
      whole.hidden = values(name).length < 2;
    }
    const setting = Object.keys(data.controls).reduce((sum, name) => sum * values(name).length + place(name), 0);
    const [sentence, ...parts] = data.moments[setting].map((at) => pool[at]);
    const panels = parts.filter((_, i) => i % 2 === 0);
    picture.draw(panels.map((panel, i) => ({ ...panel, values: parts[2 * i + 1] })));
    return sentence;
  };
}
