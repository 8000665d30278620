// A recording: panels that follow a few controls. Python has computed what is seen at every setting (recording.py).
//
// It may grow while it is seen. Then its controls have more values. A control whose state is not among its values shows
// the last one.

import { axes, band, bitmap, dot, legend, line, SERIES } from "./chart.js";
import { diverging, viridis } from "./colours.js";
import { canvas, select, slider, stepped, unpack } from "./page.js";

const HIGH = 230, LEFT = 46, RIGHT = 18, ABOVE = 30, BELOW = 44, NARROW = 560; // in pixels; narrower: panels in a column
const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : String(value));
const span = (found) => (found.length ? [Math.min(...found), Math.max(...found)] : [0, 1]);
const closest = (items, distance) => items.reduce((best, one) => (distance(one) < distance(best) ? one : best), items[0]);

/** A part of the pool; the rows of a table that Python has packed. */
function opened(part) {
  if (!part?.steps) return part;
  const { shape: [rows, columns], values } = unpack(part);
  return Array.from({ length: rows }, (_, i) => [...values.subarray(i * columns, (i + 1) * columns)]);
}

export function show(page) {
  let data = null, pool = [], panels = [];
  const values = (name) => page.data.controls[name]?.values ?? [];
  const place = (name) => {
    const found = values(name).indexOf(page.state[name]);
    return found < 0 ? values(name).length - 1 : found;
  };
  const chosen = (name) => values(name)[place(name)];
  const nearest = (name, value) => ({ [name]: closest(values(name), (one) => Math.abs(one - value)) });

  const made = {}; // the controls by name: each its input, and what is around it
  function addControl(name, { label, texts, seconds }) {
    let whole;
    const places = { // a page on which the value of a control is the place of a value of ours
      set: (to) => page.set({ [name]: values(name)[to[name]] }),
      control: (_, put, element) => page.control(name, () => put(place(name)), (whole = element)),
    };
    const text = (i) => String(values(name)[i]);
    const input = texts.length
      ? select(places, name, { label, options: texts.map((one, i) => [i, one]) })
      : slider(places, name, { label, max: 1, text, seconds });
    made[name] = { input, whole };
  }

  const under = (x, y) => panels.find(({ box }) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height);
  const picture = canvas(page, {
    height: HIGH,
    label: "",
    point: (x, y) => under(x, y)?.at(x, y).text ?? "",
    grab: (x, y) => under(x, y)?.at(x, y).to,
    key: (key) => {
      const name = panels.map(({ sets, level }) => sets || level).find(Boolean);
      const to = name && stepped(key, place(name), 0, values(name).length - 1);
      return to === undefined ? undefined : { [name]: values(name)[to] };
    },
  });

  // Each draws a panel and returns what is at a place in it: a text, and what a click there sets.
  const draw = {
    heat(pen, { box, values: rows, y: [low, high], log, diverging: both, marks, sets, ...texts }) {
      const scaled = log ? Math.log : (value) => value;
      const share = (value) => (scaled(value) - scaled(low)) / (scaled(high) - scaled(low) || 1);
      const colour = (value) => (both ? diverging(2 * share(value) - 1, page.dark) : viridis(share(value)));
      if (rows.image?.dark !== page.dark) {
        rows.image = bitmap(rows.length, rows[0].length, (i, k) => (log && !rows[i][k] ? null : colour(rows[i][k])));
        rows.image.dark = page.dark;
      }
      pen.imageSmoothingEnabled = false;
      pen.drawImage(rows.image, box.x, box.y, box.width, box.height);
      const [begin = 1, next = begin + 1] = sets ? values(sets) : [], step = next - begin;
      const wide = box.width / rows[0].length, tall = box.height / rows.length;
      const y = [begin + (rows.length - 0.5) * step, begin - 0.5 * step];
      axes(pen, page, box, { ...texts, x: [0.5, rows[0].length + 0.5], y, grid: false });
      Object.assign(pen, { fillStyle: SERIES[1], strokeStyle: SERIES[1], lineWidth: 2.5 });
      for (const column of marks) pen.fillRect(box.x + (column + 0.5) * wide - 1, box.y - 5, 3, 5);
      if (sets) pen.strokeRect(box.x, box.y + Math.min(place(sets), rows.length - 1) * tall, box.width, tall);
      return (px, py) => {
        const row = Math.floor((py - box.y) / tall), column = Math.floor((px - box.x) / wide);
        const text = `row ${row + 1}, column ${column + 1}: ${short(rows[row][column])}`;
        return { text, to: sets && row < values(sets).length ? { [sets]: values(sets)[row] } : undefined };
      };
    },
    lines(pen, { box, values: series, x, y, names, sets, level, ...texts }) {
      const points = series.flat(), [low, high] = y ?? span(points.flatMap(([, ...heights]) => heights));
      const wanted = level ? chosen(level) : low, range = [Math.min(low, wanted), Math.max(high, wanted)];
      const at = axes(pen, page, box, { ...texts, x: x ?? span(points.map(([one]) => one)), y: range });
      const shown = [...new Set(names)], colour = (name) => SERIES[shown.indexOf(name) % SERIES.length];
      series.forEach((points, k) => {
        if (points[0]?.length > 2) band(pen, at, points, colour(names[k]));
        if (names.indexOf(names[k]) < k) points.forEach((point) => dot(pen, at, point, colour(names[k])));
        else line(pen, points.map((point) => [at.x(point[0]), at.y(point[1])]), { strokeStyle: colour(names[k]), lineWidth: 2 });
      });
      if (shown.length > 1) {
        const ends = series.flatMap((points) => points.slice(-1)).map(([, end]) => at.y(end));
        legend(pen, page, box, ends.every((end) => end > box.y + box.height / 2), shown.map((name) => [name, colour(name)]));
      }
      const mark = at.x(chosen(sets)), style = { strokeStyle: page.ink, lineWidth: 1.5 };
      if (sets) line(pen, [[mark, box.y], [mark, box.y + box.height]], style);
      if (level) line(pen, [[box.x, at.y(wanted)], [box.x + box.width, at.y(wanted)]], style, [5, 4]);
      return (px, py) => {
        const near = series.map((points) => closest(points, ([one]) => Math.abs(at.x(one) - px)));
        const text = near.flatMap((one, k) => (one ? [`${names[k]}: ${short(one[1])} at ${short(one[0])}`] : [])).join(", ");
        return { text, to: sets ? nearest(sets, at.at(px)) : level ? nearest(level, at.yAt(py)) : undefined };
      };
    },
    bars(pen, { box, values: bars, x, y, ...texts }) {
      const [begin, end] = x ?? [0.5, bars.length + 0.5], at = axes(pen, page, box, { ...texts, x: [begin, end], y });
      pen.fillStyle = SERIES[0];
      bars.forEach((value, k) => {
        const left = at.x(begin + k), wide = at.x(begin + k + 1) - left;
        pen.fillRect(left + 1, at.y(value), Math.max(1, wide - 2), at.y(0) - at.y(value));
      });
      return (px) => {
        const k = Math.floor(at.at(px) - begin);
        return { text: `${begin + 0.5 + k}: ${short(bars[k])}` };
      };
    },
  };

  return () => {
    if (data !== page.data) {
      data = page.data;
      pool = data.pool.map(opened);
    }
    for (const [name, control] of Object.entries(data.controls)) if (!made[name]) addControl(name, control);
    for (const [name, { input, whole }] of Object.entries(made)) {
      input.max = values(name).length - 1;
      whole.hidden = values(name).length < 2;
    }
    const setting = Object.keys(data.controls).reduce((sum, name) => sum * values(name).length + place(name), 0);
    const [sentence, ...parts] = data.moments[setting].map((at) => pool[at]);
    const count = parts.length / 2, narrow = (picture.element.clientWidth || 720) < NARROW;
    picture.resize(narrow ? HIGH * count : HIGH);
    const { pen, width } = picture.begin();
    panels = Array.from({ length: count }, (_, i) => {
      const [x, y, wide] = narrow ? [0, i * HIGH, width] : [(i * width) / count, 0, width / count];
      const box = { x: x + LEFT, y: y + ABOVE, width: wide - LEFT - RIGHT, height: HIGH - ABOVE - BELOW };
      const panel = { ...parts[2 * i], values: parts[2 * i + 1], box };
      pen.textAlign = "left";
      return { ...panel, at: draw[panel.kind](pen, panel) };
    });
    picture.describe(sentence);
    return sentence;
  };
}
