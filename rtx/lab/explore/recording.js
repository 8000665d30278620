// A recording: panels that follow a few controls. Python has computed what is seen at every setting (recording.py).
//
// It may grow while it is seen: sliders then have more values, and one whose state is no value of its own shows the last.

import { axes, band, bitmap, dot, legend, level, line, mark, SERIES } from "./chart.js";
import { blues, css, diverging, inkOn, viridis } from "./colours.js";
import { canvas, select, slider, stepped, unpack } from "./page.js";

const HIGH = 230, LEFT = 46, RIGHT = 18, ABOVE = 30, BELOW = 44, NARROW = 560; // in pixels; narrower: panels in a column

/** The ranges of a panel's axes: those that are given, else those of its contents. */
function spans({ kind, x, y, log }, contents) {
  const points = kind === "text" ? [] : contents.flat(2).map((one) => (Array.isArray(one) ? one : [0, one]));
  const span = (given, from, to) => {
    if (given) return given;
    const all = points.flatMap((point) => point.slice(from, to)).filter((value) => Number.isFinite(value) && (!log || !from || value > 0));
    const standing = from && !log && kind !== "heat" && kind !== "lines"; // bars and stems stand on 0
    const low = all.reduce((least, one) => Math.min(least, one), standing ? 0 : Infinity);
    const high = all.reduce((most, one) => Math.max(most, one), -Infinity);
    return all.length ? (low === high ? [low - 1, high + 1] : [low, high]) : [0, 1];
  };
  return { x: span(x, 0, 1), y: span(y, 1) };
}

/** The rows of a table that Python has packed, or lines; what is special of them stands beside them. */
function unpacked(content) {
  if (content?.series) return Object.assign(content.series, { panel: content.panel });
  if (!content?.steps) return content;
  const { shape: [rows, columns], values } = unpack(content);
  const table = Array.from({ length: rows }, (_, i) => [...values.subarray(i * columns, (i + 1) * columns)]);
  return Object.assign(table, { marks: content.marks, panel: content.panel });
}

export function show(page) {
  let before = null, ranges = [], pool = []; // of the data that are shown: a kernel may give others
  let boxes = [], contents = [], panels = page.data.panels;
  const values = (name) => page.data.controls[name].values;
  const place = (name) => {
    const found = values(name).indexOf(page.state[name]);
    return found < 0 ? values(name).length - 1 : found;
  };
  const chosen = (name) => values(name)[place(name)];
  const nearest = (name, value) => values(name).reduce((best, one) => (Math.abs(one - value) < Math.abs(best - value) ? one : best));
  const sliders = {}, wholes = {}; // and what a slider stands in, with its label and button
  const indexed = (name) => ({
    set: (to) => page.set({ [name]: values(name)[to[name]] }),
    control(_, put, element) {
      wholes[name] = element;
      page.control(name, () => put(place(name)), element);
    },
  }); // a page whose state is seen as a place in the values, as a slider needs it
  for (const [name, { kind, label, texts, seconds }] of Object.entries(page.data.controls)) {
    const text = (i) => String(values(name)[i]);
    if (kind === "pick") select(page, name, { label, options: values(name).map((value, i) => [value, texts[i] ?? String(value)]) });
    else sliders[name] = slider(indexed(name), name, { label, max: 1, text, seconds });
  }

  /** The panel under a point, and the number of its row, bar, word or place there, from 0. */
  function under(x, y) {
    const i = boxes.findIndex((box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
    if (i < 0 || !contents[i]) return null;
    const box = boxes[i], { kind, names } = panels[i], content = contents[i];
    const row = (count) => Math.min(count - 1, Math.floor(((y - box.y) / box.height) * count));
    const column = (count) => Math.min(count - 1, Math.floor(((x - box.x) / box.width) * count));
    if (kind === "heat") return { i, row: row(content.length), column: column(content[0].length) };
    if (kind === "bars") return { i, column: column(content[0].length) };
    if (kind === "text") return { i, column: box.words?.findIndex((word) => x < word.x + word.width && y < word.y + 10 && y >= word.y - 12) ?? -1 };
    return { i, value: box.place.at(x), up: box.place.yAt(y) };
  }

  const moving = panels.find(({ sets, level: by }) => sets || by), first = moving && (moving.sets || moving.level);
  const picture = canvas(page, {
    height: HIGH,
    label: "",
    point(x, y) {
      const found = under(x, y);
      if (!found) return "";
      const { kind, names, places, up } = panels[found.i], content = contents[found.i];
      if (kind === "heat") return `row ${found.row + 1}, column ${found.column + 1}: ${short(content[found.row][found.column])}`;
      if (kind === "bars") return `${places[found.column] ?? found.column + 1}: ${content.map((values) => short(values[found.column])).join(", ")}`;
      if (kind === "text") return "";
      const near = content.map((points) => points.reduce((best, one) => (Math.abs(one[0] - found.value) < Math.abs(best[0] - found.value) ? one : best), points[0]));
      return near.flatMap((one, k) => (one ? [`${names[k] ?? up}: ${short(one[1])} at ${short(one[0])}`] : [])).join(", ");
    },
    grab(x, y) {
      const found = under(x, y), name = found && (panels[found.i].sets || panels[found.i].level);
      if (!name) return undefined;
      const at = found.row ?? found.column;
      if (found.value === undefined) return at >= 0 && at < values(name).length ? { [name]: values(name)[at] } : undefined;
      return { [name]: nearest(name, panels[found.i].sets ? found.value : found.up) };
    },
    key: first && ((key) => {
      const to = stepped(key, place(first), 0, values(first).length - 1);
      return to === undefined ? undefined : { [first]: values(first)[to] };
    }),
  });

  const draw = {
    heat(pen, box, { y, log, diverging: both, across, up, title, sets }, rows) {
      const [low, high] = log ? y.map(Math.log) : y;
      const share = (value) => ((log ? Math.log(value) : value) - low) / (high - low || 1);
      const colour = (value) => (both ? diverging(2 * share(value) - 1, page.dark) : viridis(share(value)));
      const empty = page.dark ? [34, 34, 34] : [255, 255, 255];
      if (rows.image?.dark !== page.dark) {
        rows.image = bitmap(rows.length, rows[0].length, (i, k) => (log && !rows[i][k] ? empty : colour(rows[i][k])));
        rows.image.dark = page.dark;
      }
      pen.imageSmoothingEnabled = false;
      pen.drawImage(rows.image, box.x, box.y, box.width, box.height);
      const [first, second, ...more] = sets ? values(sets) : [], step = second - first;
      const even = Number.isFinite(step) && [first, second, ...more][rows.length - 1] === first + step * (rows.length - 1);
      const [begin, apart] = even ? [first, step] : [1, 1]; // a row has the value that it sets, or its number
      const down = [begin + (rows.length - 0.5) * apart, begin - 0.5 * apart];
      axes(pen, page, box, { x: [0.5, rows[0].length + 0.5], y: down, title, across, up, grid: false });
      pen.fillStyle = SERIES[1];
      for (const column of rows.marks ?? []) pen.fillRect(box.x + ((column + 0.5) / rows[0].length) * box.width - 1, box.y - 5, 3, 5);
      if (!sets) return;
      const row = Math.min(place(sets), rows.length - 1);
      Object.assign(pen, { strokeStyle: SERIES[1], lineWidth: 2.5 });
      pen.strokeRect(box.x, box.y + (row / rows.length) * box.height, box.width, box.height / rows.length);
    },
    lines(pen, box, { x, y, log, title, across, up, names, sets, level: by }, series) {
      const wanted = by ? chosen(by) : y[0];
      box.place = axes(pen, page, box, { x, y: [Math.min(y[0], wanted), Math.max(y[1], wanted)], log, title, across, up });
      const shown = [...new Set(names)], colour = (k) => SERIES[(k in names ? shown.indexOf(names[k]) : k) % SERIES.length];
      series.forEach((points, k) => {
        if (points[0]?.length > 2) band(pen, box.place, points, colour(k));
        if (k in names && names.indexOf(names[k]) < k) points.forEach((point) => dot(pen, box.place, point, colour(k)));
        else line(pen, box.place, points, { colour: colour(k) });
      });
      if (shown.length > 1) legend(pen, page, ...corner(pen, box, shown, series), shown.map((name, k) => [name, SERIES[k % SERIES.length]]));
      if (sets) mark(pen, box.place, Number(chosen(sets)), page.ink);
      if (by) level(pen, box.place, wanted, page.ink);
    },
    stems(pen, box, { x, y, title, across, up, names, sets }, series) {
      box.place = axes(pen, page, box, { x, y, title, across, up });
      series.forEach((points, k) => {
        pen.fillStyle = SERIES[k];
        for (const [at, value] of points) {
          const top = box.place.y(value), foot = box.place.y(0);
          pen.beginPath();
          if (k) pen.arc(box.place.x(at), top, 4, 0, 2 * Math.PI);
          else pen.rect(box.place.x(at) - 1, Math.min(top, foot), 2, Math.abs(top - foot));
          pen.fill();
        }
      });
      if (names.length > 1) legend(pen, page, box.x + box.width - 90, box.y - 12, names.slice(1).map((name, k) => [name, SERIES[k + 1]]));
      if (sets) mark(pen, box.place, Number(chosen(sets)), page.ink);
    },
    bars(pen, box, { y, title, across, up, names, places, sets }, series) {
      const count = series[0].length, step = box.width / count, every = Math.max(1, Math.ceil(26 / step));
      const place = axes(pen, page, box, { x: [0, 1], y, title, across, up, xText: () => "" });
      const chosen = sets ? page.data.controls[sets].values.indexOf(page.state[sets]) : -1, thick = (step - 2) / series.length;
      pen.textAlign = "center";
      series.forEach((values, i) => values.forEach((value, k) => {
        pen.fillStyle = SERIES[k === chosen ? 1 : i];
        const [top, foot] = [place.y(value), place.y(0)];
        pen.fillRect(box.x + k * step + 1 + i * thick, Math.min(top, foot), Math.max(1, thick), Math.abs(top - foot));
      }));
      pen.fillStyle = page.ink;
      for (let k = 0; k < count; k += every) pen.fillText(places[k] ?? k + 1, box.x + (k + 0.5) * step, box.y + box.height + 12, every * step - 3);
      if (names.length > 1) legend(pen, page, box.x + box.width - 150, box.y + 8, names.map((name, i) => [name, SERIES[i]]));
    },
    text(pen, box, { title }, text) {
      pen.textAlign = "left";
      pen.fillStyle = page.ink;
      pen.fillText(title, box.x, box.y - 14);
      let x = box.x, y = box.y + 10;
      box.words = [];
      for (const [word, share] of typeof text === "string" ? text.split(" ").map((one) => [one, 0]) : text) {
        const width = pen.measureText(word).width + 8;
        if (x + width > box.x + box.width && x > box.x) [x, y] = [box.x, y + 24];
        const colour = blues(share, page.dark);
        pen.fillStyle = css(colour);
        if (share) pen.fillRect(x, y - 11, width - 2, 22);
        pen.fillStyle = share ? inkOn(colour) : page.ink;
        pen.fillText(word, x + 3, y);
        box.words.push({ x, y, width });
        x += width;
      }
    },
  };

  return () => {
    const { controls, moments } = page.data;
    if (before !== page.data) {
      before = page.data;
      panels = before.panels;
      pool = before.pool.map(unpacked);
      const all = (i) => [...new Set(moments.map((moment) => moment[i + 1]))].map((at) => pool[at]).filter(Boolean);
      ranges = panels.map((panel, i) => spans(panel, all(i)));
    }
    for (const [name, input] of Object.entries(sliders)) {
      input.max = values(name).length - 1;
      wholes[name].hidden = values(name).length < 2;
    }
    const at = Object.keys(controls).reduce((sum, name) => sum * values(name).length + place(name), 0);
    const [sentence, ...kept] = moments[at];
    contents = kept.map((one) => pool[one]);
    const narrow = (picture.element.clientWidth || 720) < NARROW && panels.length > 1;
    picture.resize(narrow ? HIGH * panels.length : HIGH);
    const { pen, width } = picture.begin(), total = panels.reduce((sum, { share }) => sum + share, 0);
    let x = 0;
    boxes = panels.map(({ share, kind }, i) => {
      const wide = narrow ? width : (width * share) / total, left = kind === "text" ? 6 : LEFT;
      const box = { x: x + left, y: (narrow ? i * HIGH : 0) + ABOVE, width: wide - left - RIGHT, height: HIGH - ABOVE - BELOW };
      if (!narrow) x += wide;
      return box;
    });
    panels.forEach((panel, i) => {
      if (contents[i] === null) return;
      const own = panel.fit ? spans(panel, [contents[i]]) : ranges[i];
      draw[panel.kind](pen, boxes[i], { ...panel, ...own, ...contents[i].panel }, contents[i]);
    });
    picture.describe(pool[sentence]);
    return pool[sentence];
  };
}

/** Where a legend hides the fewest points: above or below on the right, or above on the left. */
function corner(pen, box, names, series) {
  const { place, x, y, width, height } = box, wide = 40 + Math.max(...names.map((name) => pen.measureText(name).width));
  const right = x + width - wide, below = y + height - 17 * names.length;
  const hidden = ([left, top]) => series.flat().filter(([px, py]) => {
    const across = place.x(px) - left, down = place.y(py) - top;
    return across > -5 && across < wide && down > -10 && down < 17 * names.length;
  }).length;
  return [[right, y + 10], [right, below]].reduce((best, one) => (hidden(one) < hidden(best) ? one : best), [x + 12, y + 10]);
}

const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : String(value));
