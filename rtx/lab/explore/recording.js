// A recording: panels that follow a few controls. Python has computed what is seen at every setting (recording.py).

import { axes, heatMap, legend, line, mark, SERIES } from "./chart.js";
import { blues, css, diverging, inkOn, viridis } from "./colours.js";
import { canvas, select, slider, stepped } from "./page.js";

const HIGH = 230, LEFT = 46, RIGHT = 12, ABOVE = 30, BELOW = 44, NARROW = 560; // in pixels; narrower: panels in a column

/** The ranges of a panel's axes: those that are given, else those of its contents. */
function spans({ kind, x, y, log }, contents) {
  const numbers = kind === "text" ? [] : contents.flat(2).flatMap((one) => (Array.isArray(one) ? [one] : [[0, one]]));
  const span = (given, k) => {
    if (given) return given;
    const all = numbers.map((point) => point[k]).filter((value) => Number.isFinite(value) && (!log || k === 0 || value > 0));
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const from = k && !log && kind !== "heat" && kind !== "lines" ? Math.min(0, low) : low; // bars and stems stand on 0
    return all.length ? (from === high ? [from - 1, high + 1] : [from, high]) : [0, 1];
  };
  return { x: span(x, 0), y: span(y, 1) };
}

export function show(page) {
  let before = null, ranges = []; // of the data that are shown: a kernel may give others
  for (const [name, { kind, label, values, texts, seconds }] of Object.entries(page.data.controls)) {
    const text = (i) => String(values[i]);
    if (kind === "pick") select(page, name, { label, options: values.map((value, i) => [value, texts[i] ?? String(value)]) });
    else slider(indexed(page, name, values), name, { label, max: values.length - 1, text, seconds });
  }
  let boxes = [], contents = [];
  const panels = page.data.panels, first = panels.find(({ sets }) => sets)?.sets;

  /** The panel under a point, and the number of its row, bar, word or place there, from 0. */
  function under(x, y) {
    const i = boxes.findIndex((box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
    if (i < 0) return null;
    const box = boxes[i], { kind, names } = panels[i], content = contents[i];
    const row = (count) => Math.min(count - 1, Math.floor(((y - box.y) / box.height) * count));
    const column = (count) => Math.min(count - 1, Math.floor(((x - box.x) / box.width) * count));
    if (kind === "heat") return { i, row: row(content.length), column: column(content[0].length) };
    if (kind === "bars") return { i, column: column(content[0].length) };
    if (kind === "text") return { i, column: box.words?.findIndex((word) => x < word.x + word.width && y < word.y + 10 && y >= word.y - 12) ?? -1 };
    return { i, value: box.place.at(x), names };
  }

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
      const found = under(x, y), name = found && panels[found.i].sets;
      if (!name) return undefined;
      const { values } = page.data.controls[name], place = found.row ?? found.column;
      if (found.value === undefined) return place >= 0 && place < values.length ? { [name]: values[place] } : undefined;
      return { [name]: values.reduce((best, one) => (Math.abs(one - found.value) < Math.abs(best - found.value) ? one : best)) };
    },
    key: first && ((name) => {
      const { values } = page.data.controls[first];
      const to = stepped(name, values.indexOf(page.state[first]), 0, values.length - 1);
      return to === undefined ? undefined : { [first]: values[to] };
    }),
  });

  const draw = {
    heat(pen, box, { y, log, diverging: both, across, up, title, sets }, rows, all) {
      const [low, high] = log ? y.map(Math.log) : y;
      const share = (value) => ((log ? Math.log(value) : value) - low) / (high - low || 1);
      const colour = (value) => (both ? diverging(2 * share(value) - 1, page.dark) : viridis(share(value)));
      heatMap(pen, box, rows.length, rows[0].length, (i, k) => (log && !rows[i][k] ? (page.dark ? "#222" : "#fff") : css(colour(rows[i][k]))));
      axes(pen, page, box, { x: [0.5, rows[0].length + 0.5], y: [rows.length + 0.5, 0.5], title, across, up, grid: false });
      if (!sets) return;
      const row = page.data.controls[sets].values.indexOf(page.state[sets]);
      Object.assign(pen, { strokeStyle: SERIES[1], lineWidth: 2.5 });
      pen.strokeRect(box.x, box.y + (row / rows.length) * box.height, box.width, box.height / rows.length);
    },
    lines(pen, box, { x, y, log, title, across, up, names, sets }, series) {
      box.place = axes(pen, page, box, { x, y, log, title, across, up });
      series.forEach((points, k) => line(pen, box.place, points, { colour: SERIES[k % SERIES.length] }));
      if (names.length > 1) legend(pen, page, box.x + 12, box.y + 10, names.map((name, k) => [name, SERIES[k % SERIES.length]]));
      if (sets) mark(pen, box.place, Number(page.state[sets]), page.ink);
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
      if (sets) mark(pen, box.place, Number(page.state[sets]), page.ink);
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

  return (state) => {
    const { controls, pool, moments } = page.data;
    if (before !== page.data) {
      before = page.data;
      ranges = panels.map((panel, i) => spans(panel, [...new Set(moments.map((moment) => moment[i + 1]))].map((one) => pool[one])));
    }
    const place = Object.entries(controls).reduce((sum, [name, { values }]) => sum * values.length + values.indexOf(state[name]), 0);
    const [sentence, ...kept] = moments[place];
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
      const own = panel.fit ? spans(panel, [contents[i]]) : ranges[i];
      draw[panel.kind](pen, boxes[i], { ...panel, ...own }, contents[i]);
    });
    picture.describe(pool[sentence]);
    return pool[sentence];
  };
}

const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : String(value));

/** A page whose state `name` is seen as a place in `values`, as a slider needs it. */
function indexed(page, name, values) {
  return {
    set: (chosen) => page.set({ [name]: values[chosen[name]] }),
    control: (_, put, element) => page.control(name, (value) => put(values.indexOf(value)), element),
  };
}
