// Beam search as a tree of prefixes; a click on a complete hypothesis shows where it looked.
// Xu et al. (2019), MC-RNN; Wu et al. (2016), §7.

import { heatMap, SERIES } from "./chart.js";
import { blues, css, inkOn } from "./colours.js";
import { canvas, select, slider, stepped } from "./page.js";

const LINE = 19, HIGH = 22, LABEL = 92, ACROSS = 74, TOP = 10; // pixels: a leaf, a weight, its label, a token of the tree

export function show(page) {
  const { source, trees, looks, alphas } = page.data;
  slider(page, "width", { label: "beam width", min: 1, max: 5 });
  select(page, "alpha", { options: alphas.map((one) => [one, one.toFixed(1)]) });
  let found = null, place = 0, step = ACROSS, heights = [], leaves = 0;
  const layOut = (node) => {
    const children = found.nodes.flatMap(([, parent], i) => (parent === node ? [layOut(i)] : []));
    return (heights[node] = children.length ? (children[0] + children.at(-1)) / 2 : leaves++); // leaves one below the other
  };
  const tree = canvas(page, {
    height: 100,
    label: "",
    grab(x, y) {
      const near = found.found.map(({ node }) => Math.hypot(10 + step * found.nodes[node][2] - x, TOP + LINE * (heights[node] + 0.5) - y));
      return { hypothesis: 1 + near.indexOf(Math.min(...near)) };
    },
    key(name) {
      const to = stepped({ ArrowDown: "ArrowUp", ArrowUp: "ArrowDown" }[name] ?? name, place + 1, 1, found.found.length);
      return to && { hypothesis: to };
    },
  });
  let rows = [], cell = 40;
  const map = canvas(page, {
    height: 100,
    label: "the attention weights of the chosen hypothesis",
    point(x, y) {
      const row = Math.floor((y - LINE) / HIGH), column = Math.floor((x - LABEL) / cell);
      const weight = rows[row]?.[column];
      return weight === undefined ? "" : `looks at “${source[column]}” with ${(100 * weight).toFixed(0)} %`;
    },
  });

  function drawTree() {
    const { nodes } = found, deepest = Math.max(...nodes.map((node) => node[2]));
    leaves = 0;
    layOut(0);
    tree.resize(2 * TOP + LINE * leaves, 40 + 58 * deepest);
    const { pen, width } = tree.begin();
    step = (width - 60) / Math.max(1, deepest);
    const up = (node, kept) => (node < 0 ? kept : up(nodes[node][1], [...kept, node]));
    const chosen = new Set(up(found.found[place].node, [])), whole = new Set(found.found.flatMap(({ node }) => up(node, [])));
    const x = (depth) => 10 + step * depth, y = (height) => TOP + LINE * (height + 0.5);
    nodes.forEach(([word, parent, depth], i) => {
      if (parent < 0) return;
      const colour = chosen.has(i) ? SERIES[1] : whole.has(i) ? SERIES[0] : page.faint;
      Object.assign(pen, { strokeStyle: colour, lineWidth: chosen.has(i) ? 2.5 : 1.3 });
      pen.beginPath();
      pen.moveTo(x(depth - 1), y(heights[parent]));
      pen.lineTo(x(depth - 1) + 8, y(heights[i]) + 7);
      pen.lineTo(x(depth), y(heights[i]) + 7);
      pen.stroke();
      pen.fillStyle = page.ink;
      pen.fillText(word, x(depth - 1) + 10, y(heights[i]) - 1, step - 8);
    });
  }

  function drawLooks() {
    const path = (node) => (found.nodes[node][1] < 0 ? [] : [...path(found.nodes[node][1]), found.nodes[node][0]]);
    const { node, look } = found.found[place], words = path(node);
    rows = looks[look];
    cell = Math.max(26, Math.min(60, 560 / source.length));
    map.resize(LINE + HIGH * rows.length + 6, LABEL + cell * source.length);
    const { pen } = map.begin(), box = { x: LABEL, y: LINE, width: cell * source.length, height: HIGH * rows.length };
    heatMap(pen, box, rows.length, source.length, (t, s) => css(blues(rows[t][s], page.dark)));
    pen.textAlign = "center";
    pen.fillStyle = page.ink;
    source.forEach((word, s) => pen.fillText(word, LABEL + (s + 0.5) * cell, LINE / 2, cell - 2));
    words.forEach((word, t) => {
      pen.textAlign = "right";
      pen.fillStyle = page.ink;
      pen.fillText(word, LABEL - 6, LINE + (t + 0.5) * HIGH, LABEL - 8);
      pen.textAlign = "center";
      rows[t].forEach((weight, s) => {
        pen.fillStyle = inkOn(blues(weight, page.dark));
        if (weight >= 0.1) pen.fillText((100 * weight).toFixed(0), LABEL + (s + 0.5) * cell, LINE + (t + 0.5) * HIGH);
      });
    });
  }

  return ({ width, alpha, hypothesis }) => {
    found = trees[`${width} ${alpha}`];
    place = Math.min(hypothesis, found.found.length) - 1;
    drawTree();
    drawLooks();
    const ranked = found.found.map(({ text, score }, i) => `${i + 1}. “${text}” (${score.toFixed(2)})`).join("; ");
    const told = `${found.extended} prefix${found.extended === 1 ? " was" : "es were"} extended. ${ranked}. Below: where hypothesis ${place + 1} looked, in percent.`;
    tree.describe(`${told} Blue led to a complete hypothesis, orange to the chosen one; up and down choose another.`);
    return told;
  };
}
