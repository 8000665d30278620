// Beam search as a tree of prefixes; a click on a complete hypothesis shows where it looked.
// Xu et al. (2019), MC-RNN; Wu et al. (2016), §7.

import { line, SERIES } from "./chart.js";
import { blues, shaded } from "./colours.js";
import { arrows, canvas, decimals, make, select, slider, table } from "./page.js";

const LINE = 19, TOP = 10; // pixels: a leaf of the tree, above the tree

export function show(page) {
  const { text: read, source, trees, looks, alphas } = page.data;
  slider(page, "width", { label: "beam width", min: 1, max: 5 });
  select(page, "alpha", { options: alphas.map((one) => [one, one.toFixed(1)]) });
  let nodes = [], found = [], place = 0, spots = []; // spots: where the nodes are
  const tree = canvas(page, {
    label: "tree of prefixes: blue led to a complete hypothesis, orange to the chosen one; up and down choose another",
    hint: "Orange: the chosen hypothesis. Blue: the other complete ones. Grey: dropped. Click an end to choose its hypothesis.",
    grab(x, y) {
      const near = found.map(({ node }) => Math.hypot(spots[node][0] - x, spots[node][1] - y));
      return { hypothesis: 1 + near.indexOf(Math.min(...near)) };
    },
    key: (name) => arrows(name, ["hypothesis", place + 1, 1, found.length]),
  });
  tree.element.style.touchAction = "manipulation"; // a finger moves a tree that is wider than the page
  const map = make("div");
  page.show(map);

  /** A node and all before it, the root first. */
  const way = (node) => (node < 0 ? [] : [...way(nodes[node][1]), node]);

  function drawTree() {
    const parents = new Set(nodes.map(([, parent]) => parent)), deepest = Math.max(...nodes.map((node) => node[2]));
    let leaves = 0; // each has a line of its own; a node is on the line of its first leaf
    const lines = nodes.map((_, i) => (parents.has(i) ? leaves : leaves++));
    const { pen, width } = tree.begin(2 * TOP + LINE * leaves, 40 + 58 * deepest), step = (width - 60) / Math.max(1, deepest);
    spots = nodes.map(([, , depth], i) => [10 + step * depth, TOP + LINE * (lines[i] + 0.5)]);
    const chosen = new Set(way(found[place].node)), whole = new Set(found.flatMap(({ node }) => way(node)));
    nodes.forEach(([word, parent], i) => {
      if (parent < 0) return;
      const [[x, y], [right, down]] = [spots[parent], spots[i]], colour = whole.has(i) ? SERIES[0] : page.faint;
      const style = chosen.has(i) ? { strokeStyle: SERIES[1], lineWidth: 2.5 } : { strokeStyle: colour, lineWidth: 1.3 };
      line(pen, [[x, y], [x + 8, down + 7], [right, down + 7]], style);
      pen.fillText(word, x + 10, down - 1, step - 8);
    });
  }

  /** Where the chosen hypothesis looked: a row for each of its tokens, a column for each of the source's. */
  function drawLooks() {
    const { node, look } = found[place], words = way(node).slice(1).map((one) => nodes[one][0]);
    map.replaceChildren(table(source, looks[look].map((row, t) => [words[t], row]), (weight) =>
      ({ textContent: weight < 0.1 ? "" : (100 * weight).toFixed(0), style: shaded(blues(weight, page.dark)) })));
  }

  return ({ width, alpha, hypothesis }) => {
    const shown = trees[`${width} ${alpha}`], extended = shown.extended;
    [nodes, found] = [shown.nodes, shown.found];
    place = Math.min(hypothesis, found.length) - 1;
    drawTree();
    drawLooks();
    const ranked = found.map(({ text, score }, i) => `${i + 1}. “${text}” (${decimals(score, 2)})`).join("; ");
    return `“${read}”: ${extended} prefix${extended === 1 ? " was" : "es were"} extended. ${ranked}. ` +
      `Below: where hypothesis ${place + 1} looked, in percent.`;
  };
}
