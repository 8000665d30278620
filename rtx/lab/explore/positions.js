// The position lab: ways to say where a key is, as heat maps, and what a query makes of them. Python's layers gave what
// each distance adds to a score (Shaw), and the four terms of each score (Transformer-XL).

import { checkbox, select, slider } from "./page.js";
import { board } from "./panels.js";
import { softmax } from "./tensor.js";

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

const TERMS = ["content", "content_position", "global_content", "global_position"];
const LABELS = ["(a) content", "(b) content, distance", "(c) content, any query", "(d) distance, any query"];

export function show(page) {
  const { sinusoids, distances, terms } = page.data, T = sinusoids.length, D = sinusoids[0].length;
  // One scale for every k and every choice of terms, so that colours compare between them.
  const clips = Math.max(...distances.flat().map(Math.abs));
  const choices = Math.max(...terms.flat().map((four) => dot(four, four.map(Math.sign))));

  // a view: its rows of numbers, as many as there are positions, and what they say; of scores also the largest of all
  const views = {
    sinusoids: {
      rows: () => sinusoids,
      names: ["number i of D", "position t"],
      say: (t) => `Position ${t + 1} as ${D} numbers: quick waves on the left, slow ones on the right.`,
    },
    "products of sinusoids": {
      rows: () => sinusoids.map((one) => sinusoids.map((other) => dot(one, other) / (D / 2))),
      names: ["position s", "position t"],
      say: (t) => `Position ${t + 1}. A diagonal is a distance, and has one colour: the product of two positions depends on that alone.`,
    },
    "Shaw's distances": {
      rows: ({ clip }) => terms.map((row, t) => row.map((_, s) => distances[t][Math.min(clip, t - s)])),
      most: clips,
      say: (t, { clip }) => `Query ${t + 1} sees all keys up to its own. With k = ${clip}, those that are ${clip} or more ` +
        "steps back share one vector: the distinction ends there, not the view.",
    },
    "Transformer-XL": {
      rows(state) {
        const on = TERMS.map((term) => (state[term] ? 1 : 0));
        return terms.map((row) => row.map((four) => dot(four, on)));
      },
      most: choices,
      say(t, state) {
        const on = LABELS.filter((_, i) => state[TERMS[i]]);
        if (!on.length) return `All terms are off: query ${t + 1} gives the same weight to each of its keys.`;
        const blind = !state.content_position && !state.global_position;
        return `Query ${t + 1}. The scores are the sum of: ${on.join("; ")}.${blind ? " They do not know where a key is." : ""}`;
      },
    },
  };

  select(page, "encoding", { options: Object.keys(views) });
  slider(page, "position", { max: T - 1, text: (t) => t + 1 });
  const clip = slider(page, "clip", { label: "clip k", min: 1, max: distances.at(-1).length - 1 });
  const boxes = TERMS.map((term, i) => checkbox(page, term, { label: LABELS[i] }));

  const picture = board(page, { high: 290, label: "heat map of the encoding, and the chosen row as bars" });

  return (given) => {
    const state = { ...given, clip: Math.min(given.clip, clip.max) }, { encoding, position: t } = state, view = views[encoding], scores = "most" in view, most = view.most ?? 1;
    const [across, up] = view.names ?? ["key s", "query t"];
    clip.parentElement.hidden = encoding !== "Shaw's distances";
    for (const box of boxes) box.parentElement.hidden = encoding !== "Transformer-XL";
    const rows = view.rows(state), bars = scores ? softmax(rows[t]) : rows[t], largest = Math.max(...bars);
    const high = [0.1, 0.25, 0.5].find((one) => largest <= one) ?? 1;
    picture.draw([
      { kind: "heat", values: rows, across, up, y: [-most, most], diverging: true, sets: "position" },
      {
        kind: "bars", values: bars, across, x: [0.5, rows.at(-1).length + 0.5], y: scores ? [0, high] : [-most, most],
        title: scores ? `softmax of row ${t + 1}: largest ${largest.toFixed(3)}` : `row ${t + 1}`,
      },
    ]);
    return view.say(t, state);
  };
}
