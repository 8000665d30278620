// Panels in one picture: heat maps, lines and bars, side by side, or below one another in a narrow page. A click in a panel,
// or an arrow key, moves a control.

import { axes, band, bitmap, colourBar, disc, heatMap, legend, line, SERIES, short } from "./chart.js";
import { diverging, viridis } from "./colours.js";
import { arrows, canvas } from "./page.js";

const LEFT = 46, RIGHT = 18, ABOVE = 30, BELOW = 44, BAR = 20; // pixels around a panel, and for a colour bar
const NARROW = 560; // pixels: a narrower page has its panels in a column
const span = (found) => (found.length ? [Math.min(...found), Math.max(...found)] : [0, 1]);
/** The item at the smallest distance. */
export const closest = (items, distance) => items.reduce((best, one) => (distance(one) < distance(best) ? one : best), items[0]);

/**
 * Returns a picture and what draws `panels` in it, each `high` pixels high. They are as in recording.py; values of a heat map
 * may be null, or missing at the ends of rows, and it may have an `image` of its own and `say(row, column)`, a text for a cell.
 *
 * Of a control that they move, `values(name)` are the values in order, `place(name)` is the place of the one that is seen, and
 * `move(name, place)` returns what to set for another one. By default the state holds the place of a row, from 0.
 */
export function board(page, options) {
  const { high, label, values = () => panels[0].values.map((_, i) => i + 1) } = options;
  const { place = (name) => page.state[name], move = (name, to) => ({ [name]: to }) } = options;
  let panels = [];
  const under = (x, y) => panels.find(({ box }) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height);
  const picture = canvas(page, {
    label: `${label}; arrow keys move the mark`,
    point: (x, y) => under(x, y)?.at(x, y).text ?? "",
    grab: (x, y) => under(x, y)?.at(x, y).to,
    key(key) {
      const panel = panels.find(({ sets, level }) => sets || level);
      if (!panel) return undefined;
      const name = panel.sets || panel.level, way = ["to", place(name), 0, values(name).length - 1];
      const moved = arrows(key, way, panel.kind === "heat" ? undefined : way);
      return moved && move(name, moved.to);
    },
  });
  const chosen = (name) => values(name)[place(name)];
  const nearest = (name, value) => move(name, values(name).indexOf(closest(values(name), (one) => Math.abs(one - value))));

  // Each draws a panel and returns what is at a place in it: a text, and what a click there sets.
  const draw = {
    heat(pen, { box, values: rows, y: [low, high], image, say, log, scale = log ? "logarithmic" : "", diverging: both, marks = [], sets, ...texts }) {
      const scaled = log ? Math.log : (value) => value, columns = rows.at(-1).length;
      const share = (value) => (scaled(value) - scaled(low)) / (scaled(high) - scaled(low) || 1);
      const colour = (part) => (both ? diverging(2 * part - 1, page.dark) : viridis(part));
      const isEmpty = (value) => value == null || (log && !value);
      if (!image && rows.image?.dark !== page.dark) {
        rows.image = bitmap(rows.length, columns, (i, k) => !isEmpty(rows[i][k]) && colour(share(rows[i][k])));
        rows.image.dark = page.dark;
      }
      heatMap(pen, box, image ?? rows.image);
      colourBar(pen, page, box.x, box.y + box.height + BELOW + 6, colour, short(low), `${short(high)}  ${scale}`);
      const [begin = 1, next = begin + 1] = sets ? values(sets) : [], step = next - begin;
      const wide = box.width / columns, tall = box.height / rows.length;
      const y = [begin + (rows.length - 0.5) * step, begin - 0.5 * step];
      axes(pen, page, box, { ...texts, x: [0.5, columns + 0.5], y, grid: false });
      pen.fillStyle = SERIES[1];
      for (const column of marks) pen.fillRect(box.x + (column + 0.5) * wide - 1, box.y - 5, 3, 5);
      const right = box.x + box.width, middle = box.y + (Math.min(place(sets), rows.length - 1) + 0.5) * tall;
      pen.fillStyle = page.ink;
      for (const [tip, back] of sets ? [[box.x, -6], [right, 6]] : []) { // beside the row, which stays as it is
        pen.beginPath();
        for (const [x, y] of [[tip, 0], [tip + back, -5], [tip + back, 5]]) pen.lineTo(x, middle + y);
        pen.fill();
      }
      return (px, py) => {
        const row = Math.floor((py - box.y) / tall), column = Math.floor((px - box.x) / wide), value = rows[row][column];
        const { up = "row", across = "column" } = texts, chosen = sets ? values(sets)[row] : row + 1;
        const told = say ?? (() => `${up || "row"} ${chosen}, ${across || "column"} ${column + 1}: ${short(value)}`);
        return {
          text: value == null ? "" : told(row, column),
          to: sets && row < values(sets).length ? move(sets, row) : undefined,
        };
      };
    },
    lines(pen, { box, values: series, x, y, names, sets, level, ...texts }) {
      const points = series.flat(), [least, most] = span(points.flatMap(([, ...heights]) => heights));
      const [low, high] = y ?? [least - 0.04 * (most - least), most + 0.04 * (most - least)];
      const wanted = level ? chosen(level) : low, range = [Math.min(low, wanted), Math.max(high, wanted)];
      const at = axes(pen, page, box, { ...texts, x: x ?? span(points.map(([one]) => one)), y: range });
      const shown = [...new Set(names)], colour = (name) => SERIES[shown.indexOf(name) % SERIES.length];
      series.forEach((points, k) => {
        if (points[0]?.length > 2) band(pen, at, points, colour(names[k]));
        pen.fillStyle = colour(names[k]);
        if (names.indexOf(names[k]) < k) points.forEach(([x, y]) => disc(pen, at.x(x), at.y(y), 4));
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
        const name = (k) => (names.indexOf(names[k]) < k ? "●" : `${names[k]}:`); // dots of a line that came before
        const text = near.flatMap((one, k) => (one ? [`${name(k)} ${short(one[1])} at ${short(one[0])}`] : [])).join(", ");
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
        return { text: k in bars ? `${begin + 0.5 + k}: ${short(bars[k])}` : "" }; // a short row ends before the axis
      };
    },
  };

  return {
    ...picture,
    draw(shown) {
      const narrow = (picture.element.clientWidth || 720) < NARROW, count = shown.length;
      const tall = ABOVE + high + BELOW + (shown.some(({ kind }) => kind === "heat") ? BAR : 0);
      const { pen, width } = picture.begin(narrow ? tall * count : tall), wide = narrow ? width : width / count;
      panels = shown.map((panel, i) => {
        const [x, y] = narrow ? [0, i * tall] : [i * wide, 0];
        return { ...panel, box: { x: x + LEFT, y: y + ABOVE, width: wide - LEFT - RIGHT, height: high } };
      });
      for (const panel of panels) panel.at = draw[panel.kind](pen, panel);
    },
  };
}
