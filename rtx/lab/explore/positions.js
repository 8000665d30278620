// The position lab: ways to say where a key is, as heat maps, and what a query makes of them. All is computed here; of
// Python's come queries, keys and what was learnt: Shaw's vectors, Transformer-XL's weights and biases.

import { apart, heatMap } from "./chart.js";
import { css, diverging } from "./colours.js";
import { canvas, checkbox, select, slider, stepped } from "./page.js";
import { softmax } from "./tensor.js";

const LEFT = 44, TOP = 24, SIZE = 300, NARROWEST = 620; // of the map and of the picture, in pixels

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

/** Vaswani et al. (2017), §3.5: position t as D numbers, sines at even places and cosines at odd ones. */
function sinusoid(t, D) {
  return Array.from({ length: D }, (_, i) => {
    const angle = t / 10000 ** ((i - (i % 2)) / D);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** Shaw et al. (2018), Eq. (4): what the distance adds to a score; `vectors` are those of the distances -k … 0. */
function shawScore({ queries, vectors }, t, s, clip) {
  const row = vectors.length - 1 + Math.max(-clip, s - t);
  return dot(queries[t], vectors[row]) / Math.sqrt(queries[t].length);
}

/** Dai et al. (2019), §3.3: the terms (a) to (d) of a query and a key. */
function xlTerms({ queries, keys, weight, u, v }, t, s) {
  const r = weight.map((row) => dot(row, sinusoid(t - s, row.length)));
  const [q, k] = [queries[t], keys[s]];
  return [dot(q, k), dot(q, r), dot(u, k), dot(v, r)].map((term) => term / Math.sqrt(u.length));
}

/** A number with so many digits; what is rounded to zero has no sign. */
const written = (value, digits = 2) => value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");

const TERMS = ["content", "content_position", "global_content", "global_position"];
const LABELS = ["(a) content", "(b) content, distance", "(c) content, any query", "(d) distance, any query"];

export function show(page) {
  const { length: T, width: D, shaw, xl } = page.data;
  const steps = [...Array(T).keys()];
  const table = steps.map((t) => sinusoid(t, D));
  const terms = steps.map((t) => steps.slice(0, t + 1).map((s) => xlTerms(xl, t, s)));

  // The largest score there is with any k, or any choice of terms: one scale, so that colours compare between them.
  const farthest = (values) => Math.max(1e-9, ...values.flat(2).map(Math.abs));
  const reached = (t) => steps.slice(0, Math.min(t + 1, shaw.vectors.length));
  const clips = farthest(steps.map((t) => reached(t).map((back) => shawScore(shaw, t, t - back, back || 1))));
  const sums = (four) => [1, -1].map((sign) => four.reduce((sum, term) => sum + Math.max(0, sign * term), 0));
  const choices = farthest(terms.map((row) => row.map(sums)));

  const past = (t, score) => steps.slice(0, t + 1).map(score);
  // a view: its rows of numbers, as many as there are positions; whether they are scores of the past; what they say
  const views = {
    sinusoids: {
      rows: () => table,
      names: ["number i of D", "position t"],
      say: (t) => `Position ${t + 1} as ${D} numbers: quick waves on the left, slow ones on the right.`,
    },
    "products of sinusoids": {
      rows: () => steps.map((t) => steps.map((s) => dot(table[t], table[s]) / (D / 2))),
      names: ["position s", "position t"],
      say: () => "A diagonal is a distance, and has one colour: the product of two positions depends on that alone.",
    },
    "Shaw's distances": {
      rows: ({ clip }) => steps.map((t) => past(t, (s) => shawScore(shaw, t, s, clip))),
      scores: true,
      most: clips,
      names: ["key s", "query t"],
      say(t, { clip }) {
        const far = Math.max(0, t + 1 - clip);
        const shared = `the ${far} keys that are ${clip} or more steps back share one vector`;
        return `${t ? `Query ${t + 1} sees all of ${t + 1} keys` : "Query 1 sees its own key"}. With k = ${clip}, ` +
          (far > 1 ? `${shared}: the distinction ends there, not the view.` : "each distance that it sees has a vector of its own.");
      },
    },
    "Transformer-XL": {
      rows(state) {
        const on = TERMS.map((term) => (state[term] ? 1 : 0));
        return steps.map((t) => past(t, (s) => dot(terms[t][s], on)));
      },
      scores: true,
      most: choices,
      names: ["key s", "query t"],
      say(t, state) {
        const on = LABELS.filter((_, i) => state[TERMS[i]]).map((label) => label.slice(0, 3));
        if (!on.length && !t) return "All terms are off, and query 1 has but one key.";
        if (!on.length) return `All terms are off: query ${t + 1} gives each of its ${t + 1} keys the same weight.`;
        const blind = !state.content_position && !state.global_position;
        return `The scores are ${on.join(" + ")}${blind ? ": they do not know where a key is" : ""}.`;
      },
    },
  };

  select(page, "encoding", { options: Object.keys(views) });
  slider(page, "position", { max: T - 1, text: (t) => t + 1 });
  const clip = slider(page, "clip", { label: "clip k", min: 1, max: shaw.vectors.length - 1 });
  const boxes = TERMS.map((term, i) => checkbox(page, term, { label: LABELS[i] }));

  let rows = [], columns = T, width = SIZE;
  const at = (x, y) => [Math.floor(((y - TOP) / SIZE) * T), Math.floor(((x - LEFT) / width) * columns)];
  const picture = canvas(page, {
    height: TOP + SIZE + 36,
    least: NARROWEST,
    label: "heat map of the encoding, and the chosen row as bars",
    grab(x, y) {
      const [t, s] = at(x, y);
      return t >= 0 && t < T && s >= 0 && x < LEFT + width ? { position: t } : undefined;
    },
    key(name) {
      const position = stepped({ ArrowDown: "ArrowUp", ArrowUp: "ArrowDown" }[name] ?? name, page.state.position, 0, T - 1);
      return position === undefined ? undefined : { position };
    },
    point(x, y) {
      const [t, s] = at(x, y), value = s >= 0 && rows[t]?.[s];
      return value === undefined || value === false ? "" : `row ${t + 1}, column ${s + 1}: ${written(value, 3)}`;
    },
  });

  function draw(view, t) {
    const { pen, width: whole } = picture.begin();
    width = Math.min(SIZE, whole * 0.5);
    columns = rows.at(-1).length;
    const most = view.most ?? 1; // sinusoids, and their products over D / 2
    const colour = (value) => (value === undefined ? "transparent" : css(diverging(value / most, page.dark)));
    heatMap(pen, { x: LEFT, y: TOP, width, height: SIZE }, T, columns, (i, j) => colour(rows[i][j]));
    pen.strokeStyle = "#de8f05";
    pen.lineWidth = 2;
    pen.strokeRect(LEFT, TOP + (t * SIZE) / T, width, SIZE / T);
    pen.fillStyle = page.ink;
    pen.fillText(`${view.names[0]} →`, LEFT, 12);
    pen.fillText(`${view.names[1]} ↓`, 0, TOP + SIZE + 16);
    pen.fillText(`blue ${written(-most)}, orange ${written(most)}`, LEFT + 70, TOP + SIZE + 16);

    drawBars(pen, view, t, LEFT + width + 50, whole - 12, most);
  }

  /** The chosen row, from `left` to `right`: values up to `most`, or shares on the smallest of four axes that holds them. */
  function drawBars(pen, view, t, left, right, most) {
    const bars = view.scores ? softmax(rows[t]) : rows[t], step = (right - left) / columns;
    const largest = Math.max(...bars), axis = [0.1, 0.25, 0.5, 1].find((one) => largest <= one + 1e-9);
    const [low, high] = view.scores ? [0, axis] : [-most, most];
    const y = (value) => TOP + (SIZE * (high - value)) / (high - low);
    pen.fillText(view.scores ? `softmax of row ${t + 1}: largest ${written(largest, 3)}` : `row ${t + 1}`, left, 12);
    pen.textAlign = "right";
    for (const tick of [0, 1, 2, 3, 4].map((i) => low + ((high - low) * i) / 4)) {
      pen.fillText(written(tick, high < 0.5 ? 3 : 2), left - 6, y(tick));
      pen.fillRect(left - 4, y(tick), 4, 1);
    }
    pen.textAlign = "center";
    const every = 8 * apart(8 * step);
    for (let s = 0; s < columns; s += s ? every : every - 1) // 1, 8, 16, …, or fewer
      pen.fillText(s + 1, left + (s + 0.5) * step, TOP + SIZE + 12);
    pen.fillText(view.names[0], (left + right) / 2, TOP + SIZE + 27);
    pen.textAlign = "left";
    pen.fillRect(left, y(0), right - left, 1);
    pen.fillStyle = css(diverging(-0.8, page.dark));
    bars.forEach((bar, s) => pen.fillRect(left + s * step, y(Math.max(bar, 0)), Math.max(1, step - 1), Math.abs(y(bar) - y(0))));
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
