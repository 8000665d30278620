// A recording: panels that follow a few controls. Python has computed what is seen at every setting (recording.py).
//
// It may grow while it is seen. Then its controls have more values. A control whose state is not among its values shows
// the last one.

import { axes, band, bitmap, dot, legend, level, line, mark, SERIES } from "./chart.js";
import { diverging, viridis } from "./colours.js";
import { canvas, select, slider, stepped, unpack } from "./page.js";

const HIGH = 230, LEFT = 46, RIGHT = 18, ABOVE = 30, BELOW = 44, NARROW = 560; // in pixels; narrower: panels in a column
const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : String(value));

/** A content as { values, panel }: rows or series, and what differs from the panel's own arguments. */
function opened(content) {
  const { values, panel } = content?.panel ? content : { values: content, panel: {} };
  if (!values?.steps) return { values, panel };
  const { shape: [rows, columns], values: flat } = unpack(values);
  return { values: Array.from({ length: rows }, (_, i) => [...flat.subarray(i * columns, (i + 1) * columns)]), panel };
}

/** The ranges of the axes of lines: the given ones, else those of all contents. */
function spans({ x, y }, contents) {
  const points = contents.flat(2);
  const span = (found) => {
    const low = Math.min(...found), high = Math.max(...found);
    return found.length ? (low === high ? [low - 1, high + 1] : [low, high]) : [0, 1];
  };
  return { x: x ?? span(points.map(([one]) => one)), y: y ?? span(points.flatMap(([, ...more]) => more)) };
}

export function show(page) {
  let before = null, pool = [], ranges = [], hits = []; // `hits`: for each panel its box, and what is at a place in it
  const values = (name) => page.data.controls[name].values;
  const place = (name) => {
    const found = values(name).indexOf(page.state[name]);
    return found < 0 ? values(name).length - 1 : found;
  };
  const chosen = (name) => values(name)[place(name)];
  const nearest = (name, value) => ({
    [name]: values(name).reduce((best, one) => (Math.abs(one - value) < Math.abs(best - value) ? one : best)),
  });
  const sliders = {};
  for (const [name, { label, texts, seconds }] of Object.entries(page.data.controls)) {
    if (texts.length) {
      select(page, name, { label, options: values(name).map((value, i) => [value, texts[i]]) });
      continue;
    }
    let whole;
    const indexed = {
      set: (to) => page.set({ [name]: values(name)[to[name]] }),
      control: (_, put, element) => page.control(name, () => put(place(name)), (whole = element)),
    }; // the slider sees the place of the value
    const input = slider(indexed, name, { label, max: 1, text: (i) => String(values(name)[i]), seconds });
    sliders[name] = { input, whole };
  }

  const hit = (x, y) => {
    const inside = ({ box }) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
    return hits.find(inside)?.at(x, y) ?? {};
  };
  const moving = page.data.panels.find(({ sets, level: by }) => sets || by), first = moving && (moving.sets || moving.level);
  const picture = canvas(page, {
    height: HIGH,
    label: "",
    point: (x, y) => hit(x, y).text ?? "",
    grab: (x, y) => hit(x, y).to,
    key: first && ((key) => {
      const to = stepped(key, place(first), 0, values(first).length - 1);
      return to === undefined ? undefined : { [first]: values(first)[to] };
    }),
  });

  // Each draws a panel and returns what is at a place in it: a text, and what a click there sets.
  const draw = {
    heat(pen, box, { y: [low, high], log, diverging: both, marks, across, up, title, sets }, rows) {
      const scaled = log ? Math.log : (value) => value;
      const share = (value) => (scaled(value) - scaled(low)) / (scaled(high) - scaled(low) || 1);
      const colour = (value) => (both ? diverging(2 * share(value) - 1, page.dark) : log && !value ? null : viridis(share(value)));
      if (rows.image?.dark !== page.dark) {
        rows.image = bitmap(rows.length, rows[0].length, (i, k) => colour(rows[i][k]));
        rows.image.dark = page.dark;
      }
      pen.imageSmoothingEnabled = false;
      pen.drawImage(rows.image, box.x, box.y, box.width, box.height);
      const [begin = 1, next = begin + 1] = sets ? values(sets) : [], step = next - begin, wide = box.width / rows[0].length, tall = box.height / rows.length;
      const down = [begin + (rows.length - 0.5) * step, begin - 0.5 * step];
      axes(pen, page, box, { x: [0.5, rows[0].length + 0.5], y: down, title, across, up, grid: false });
      pen.fillStyle = pen.strokeStyle = SERIES[1];
      for (const column of marks) pen.fillRect(box.x + (column + 0.5) * wide - 1, box.y - 5, 3, 5);
      pen.lineWidth = 2.5;
      if (sets) pen.strokeRect(box.x, box.y + Math.min(place(sets), rows.length - 1) * tall, box.width, tall);
      return (x, y) => {
        const row = Math.floor((y - box.y) / tall), column = Math.floor((x - box.x) / wide);
        const text = `row ${row + 1}, column ${column + 1}: ${short(rows[row][column])}`;
        return { text, to: sets && row < values(sets).length ? { [sets]: values(sets)[row] } : undefined };
      };
    },
    lines(pen, box, { x, y, title, across, up, names, sets, level: by }, series) {
      const wanted = by ? chosen(by) : y[0];
      const at = axes(pen, page, box, { x, y: [Math.min(y[0], wanted), Math.max(y[1], wanted)], title, across, up });
      const shown = [...new Set(names)], colour = (name) => SERIES[shown.indexOf(name) % SERIES.length];
      series.forEach((points, k) => {
        if (points[0]?.length > 2) band(pen, at, points, colour(names[k]));
        if (names.indexOf(names[k]) < k) points.forEach((point) => dot(pen, at, point, colour(names[k])));
        else line(pen, at, points, { colour: colour(names[k]) });
      });
      if (shown.length > 1) {
        const wide = 40 + Math.max(...shown.map((name) => pen.measureText(name).width)), middle = box.y + box.height / 2;
        const low = series.every((points) => !points.length || at.y(points.at(-1)[1]) > middle); // the lines' ends
        const top = low ? box.y + 10 : box.y + box.height - 17 * shown.length;
        legend(pen, page, box.x + box.width - wide, top, shown.map((name) => [name, colour(name)]));
      }
      if (sets) mark(pen, at, Number(chosen(sets)), page.ink);
      if (by) level(pen, at, wanted, page.ink);
      return (px, py) => {
        const near = series.map((points) => points.reduce((best, one) => (Math.abs(at.x(one[0]) - px) < Math.abs(at.x(best[0]) - px) ? one : best), points[0]));
        const text = near.flatMap((one, k) => (one ? [`${names[k]}: ${short(one[1])} at ${short(one[0])}`] : [])).join(", ");
        return { text, to: sets ? nearest(sets, at.at(px)) : by ? nearest(by, at.yAt(py)) : undefined };
      };
    },
    bars(pen, box, { y, title, across, up, places }, bars) {
      const step = box.width / bars.length, every = Math.max(1, Math.ceil(26 / step)), name = (k) => places[k] ?? k + 1;
      const at = axes(pen, page, box, { x: [0, 1], y, title, across, up, xText: () => "" });
      pen.fillStyle = SERIES[0];
      bars.forEach((value, k) => pen.fillRect(box.x + k * step + 1, at.y(value), Math.max(1, step - 2), at.y(0) - at.y(value)));
      pen.fillStyle = page.ink;
      pen.textAlign = "center";
      for (let k = 0; k < bars.length; k += every) pen.fillText(name(k), box.x + (k + 0.5) * step, box.y + box.height + 12);
      return (x) => {
        const k = Math.floor((x - box.x) / step);
        return { text: `${name(k)}: ${short(bars[k])}` };
      };
    },
  };

  return () => {
    const { controls, moments, panels } = page.data;
    if (before !== page.data) {
      before = page.data;
      pool = before.pool.map(opened);
      const all = (i) => [...new Set(moments.map((moment) => moment[i + 1]))].map((at) => pool[at].values);
      ranges = panels.map((panel, i) => (panel.kind === "lines" ? spans(panel, all(i)) : {}));
    }
    for (const [name, { input, whole }] of Object.entries(sliders)) {
      input.max = values(name).length - 1;
      whole.hidden = values(name).length < 2;
    }
    const [sentence, ...kept] = moments[Object.keys(controls).reduce((sum, name) => sum * values(name).length + place(name), 0)];
    const narrow = (picture.element.clientWidth || 720) < NARROW;
    picture.resize(narrow ? HIGH * panels.length : HIGH);
    const { pen, width } = picture.begin(), total = panels.reduce((sum, { share }) => sum + share, 0);
    let x = 0;
    hits = panels.flatMap((panel, i) => {
      const wide = narrow ? width : (width * panel.share) / total, content = pool[kept[i]];
      const box = { x: x + LEFT, y: (narrow ? i * HIGH : 0) + ABOVE, width: wide - LEFT - RIGHT, height: HIGH - ABOVE - BELOW };
      if (!narrow) x += wide;
      if (content.values === null) return [];
      pen.textAlign = "left";
      return { box, at: draw[panel.kind](pen, box, { ...panel, ...ranges[i], ...content.panel }, content.values) };
    });
    picture.describe(before.pool[sentence]);
    return before.pool[sentence];
  };
}
