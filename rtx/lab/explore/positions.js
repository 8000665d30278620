// The position lab: ways to say where a key is, as heat maps, and what a query makes of them. Python's layers gave what
// each distance adds to a score (Shaw), and the four terms of each score (Transformer-XL).

import { axes, colourBar, heatMap, SERIES } from "./chart.js";
import { css, diverging } from "./colours.js";
import { arrows, canvas, checkbox, select, slider } from "./page.js";
import { softmax } from "./tensor.js";

const LEFT = 46, TOP = 28, SIZE = 290, BELOW = 64, NARROW = 560; // pixels; in a narrow picture the bars are below the map

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

/** A number with so many digits; what is rounded to zero has no sign. */
const written = (value, digits = 2) => value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");

const TERMS = ["content", "content_position", "global_content", "global_position"];
const LABELS = ["(a) content", "(b) content, distance", "(c) content, any query", "(d) distance, any query"];

export function show(page) {
  const { sinusoids, distances, terms } = page.data, T = sinusoids.length, D = sinusoids[0].length;
  // One scale for every k and every choice of terms, so that colours compare between them.
  const clips = Math.max(...distances.flat().map(Math.abs));
  const choices = Math.max(...terms.flat().map((four) => dot(four, four.map(Math.sign))));

  // a view: its rows of numbers, as many as there are positions; whether they are scores of the past; what they say
  const views = {
    sinusoids: {
      rows: () => sinusoids,
      names: ["number i of D", "position t"],
      say: (t) => `Position ${t + 1} as ${D} numbers: quick waves on the left, slow ones on the right.`,
    },
    "products of sinusoids": {
      rows: () => sinusoids.map((one) => sinusoids.map((other) => dot(one, other) / (D / 2))),
      names: ["position s", "position t"],
      say: () => "A diagonal is a distance, and has one colour: the product of two positions depends on that alone.",
    },
    "Shaw's distances": {
      rows: ({ clip }) => terms.map((row, t) => row.map((_, s) => distances[t][Math.min(clip, t - s)])),
      scores: true,
      most: clips,
      names: ["key s", "query t"],
      say(t, { clip }) {
        const far = Math.max(0, t + 1 - clip);
        const shared = `the ${far} keys that are ${clip} or more steps back share one vector`;
        return `Query ${t + 1} sees all keys up to its own. With k = ${clip}, ` +
          (far > 1 ? `${shared}: the distinction ends there, not the view.` : "each distance that it sees has a vector of its own.");
      },
    },
    "Transformer-XL": {
      rows(state) {
        const on = TERMS.map((term) => (state[term] ? 1 : 0));
        return terms.map((row) => row.map((four) => dot(four, on)));
      },
      scores: true,
      most: choices,
      names: ["key s", "query t"],
      say(t, state) {
        const on = LABELS.filter((_, i) => state[TERMS[i]]).map((label) => label.slice(0, 3));
        if (!on.length) return `All terms are off: query ${t + 1} gives the same weight to each of its keys.`;
        const blind = !state.content_position && !state.global_position;
        return `The scores are ${on.join(" + ")}${blind ? ": they do not know where a key is" : ""}.`;
      },
    },
  };

  select(page, "encoding", { options: Object.keys(views) });
  slider(page, "position", { max: T - 1, text: (t) => t + 1 });
  const clip = slider(page, "clip", { label: "clip k", min: 1, max: distances.at(-1).length - 1 });
  const boxes = TERMS.map((term, i) => checkbox(page, term, { label: LABELS[i] }));

  let rows = [], size = SIZE;
  const at = (x, y) => [Math.floor(((y - TOP) / size) * T), Math.floor(((x - LEFT) / size) * rows.at(-1).length)];
  const picture = canvas(page, {
    height: TOP + SIZE + BELOW,
    label: "heat map of the encoding, and the chosen row as bars",
    grab(x, y) {
      const [t, s] = at(x, y);
      return t >= 0 && t < T && s >= 0 && x < LEFT + size ? { position: t } : undefined;
    },
    key: (name) => arrows(name, ["position", page.state.position, 0, T - 1]),
    point(x, y) {
      const [t, s] = at(x, y), value = rows[t]?.[s];
      return value === undefined ? "" : `row ${t + 1}, column ${s + 1}: ${written(value, 3)}`;
    },
  });

  function draw(view, t) {
    const wide = picture.element.clientWidth || 720, narrow = wide < NARROW, columns = rows.at(-1).length;
    size = Math.min(SIZE, narrow ? wide - LEFT - 12 : wide * 0.45);
    picture.resize((TOP + size + BELOW) * (narrow ? 2 : 1));
    const { pen } = picture.begin(), most = view.most ?? 1; // sinusoids, and their products over D / 2
    const box = { x: LEFT, y: TOP, width: size, height: size }, [across, up] = view.names;
    const colour = (value) => (value === undefined ? "transparent" : css(diverging(value / most, page.dark)));
    heatMap(pen, box, T, columns, (i, j) => colour(rows[i][j]));
    axes(pen, page, box, { x: [0.5, columns + 0.5], y: [T + 0.5, 0.5], grid: false, across, up });
    Object.assign(pen, { strokeStyle: SERIES[1], lineWidth: 2 });
    pen.strokeRect(LEFT, TOP + (t * size) / T, size, size / T);
    colourBar(pen, page, LEFT, TOP + size + 52, (share) => diverging(2 * share - 1, page.dark), written(-most), written(most));
    const place = narrow ? { x: LEFT, y: 2 * TOP + size + BELOW } : { x: 2 * LEFT + size + 20, y: TOP };
    drawBars(pen, view, t, { ...place, width: narrow ? size : wide - place.x - 12, height: size }, most);
  }

  /** The chosen row: values up to `most`, or the softmax of scores. */
  function drawBars(pen, view, t, box, most) {
    const bars = view.scores ? softmax(rows[t]) : rows[t], largest = Math.max(...bars), columns = rows.at(-1).length;
    const title = view.scores ? `softmax of row ${t + 1}: largest ${written(largest, 3)}` : `row ${t + 1}`;
    const y = view.scores ? [0, [0.1, 0.25, 0.5].find((one) => largest <= one) ?? 1] : [-most, most];
    const place = axes(pen, page, box, { x: [0.5, columns + 0.5], y, title, across: view.names[0] });
    pen.fillStyle = SERIES[0];
    bars.forEach((bar, s) => {
      const left = place.x(s + 0.6), top = place.y(Math.max(bar, 0));
      pen.fillRect(left, top, Math.max(1, place.x(s + 1.4) - left), place.y(Math.min(bar, 0)) - top);
    });
  }

  return (state) => {
    const view = views[state.encoding];
    clip.parentElement.hidden = state.encoding !== "Shaw's distances";
    for (const box of boxes) box.parentElement.hidden = state.encoding !== "Transformer-XL";
    rows = view.rows(state);
    draw(view, state.position);
    return view.say(state.position, state);
  };
}
