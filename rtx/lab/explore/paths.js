// Shortest paths through a channel of MC-RNN, and the gradients measured over the same distances.
// Xu et al. (2019), Eq. 1 and §5.2.
import { axes, legend, line, mark } from "./chart.js";
import { canvas, slider, stepped } from "./page.js";

const ORANGE = "#de8f05", BLUE = "#0173b2", SKY = "#56b4e9";
const CHAIN = 92, GAP = 40, PLOT = 210; // heights of the picture's parts, in CSS pixels
const NARROWEST = 540; // room for the titles of two plots

/** m_t^k, Eq. (1). */
const inDegree = (t, k, n) => ((((t - k - 1) % (n - 1)) + n - 1) % (n - 1)) + 1;

/** The step that paths start from: it ends a block of channel 1. As `step_of` in paths.py. */
const stepOf = (n, farthest) => 1 + (n - 1) * Math.ceil((farthest + n) / (n - 1));

/** The steps on a shortest path from t back to t - distance: the longest edge is always best. */
function path(t, k, n, distance) {
  const steps = [t];
  while (steps.at(-1) > t - distance) {
    const here = steps.at(-1);
    steps.push(Math.max(t - distance, here - inDegree(here, k, n)));
  }
  return steps;
}

const claimed = (n, distance) => Math.floor(distance / (n - 1)) + 1;
const edges = (count) => `${count} edge${count === 1 ? "" : "s"}`;
const power = (exponent) => (10 ** exponent >= 0.001 ? (10 ** exponent).toPrecision(2) : (10 ** exponent).toExponential(0));

export function show(page) {
  const { farthest, measured } = page.data, sizes = Object.keys(measured).map(Number).sort((a, b) => a - b);
  const nearest = (n) => sizes.reduce((best, one) => (Math.abs(one - n) < Math.abs(best - n) ? one : best)); // some lack
  slider(page, "n", { label: "block n", min: sizes[0], max: sizes.at(-1), text: nearest });
  const channel = slider(page, "channel", { label: "channel k", min: 1, max: 1 });
  slider(page, "distance", { label: "distance l", min: 1, max: farthest });
  let box = { x: 44, y: CHAIN + GAP, width: 200, height: PLOT - 40 };
  const picture = canvas(page, {
    height: CHAIN + GAP + PLOT,
    least: NARROWEST,
    label: "",
    grab(x, y) {
      const { clientWidth } = picture.element, across = (clientWidth - 60) / (farthest + 1);
      const left = x < clientWidth / 2 ? box.x : clientWidth / 2 + box.x;
      const distance = y < CHAIN ? Math.round((clientWidth - 20 - x) / across - 0.5) : Math.round(((x - left) / box.width) * farthest);
      return { distance: Math.min(farthest, Math.max(1, distance)) };
    },
    key(name) {
      const distance = stepped(name, page.state.distance, 1, farthest);
      return distance && { distance };
    },
  });
  const exponents = Object.values(measured).flat(2); // of the gradients: one scale for all n, so that they compare
  const low = Math.floor(Math.min(-1, ...exponents)), high = Math.max(0, ...exponents) + 0.3;

  /** The channel's last steps, with the path as arcs. */
  function drawChain(pen, width, n, k, distance, steps) {
    const t = steps[0], across = (width - 60) / (farthest + 1), radius = Math.min(9, across / 2 - 1.5), y = 60;
    const x = (step) => width - 20 - (t - step + 0.5) * across;
    pen.save();
    pen.rect(30, 0, width, CHAIN);
    pen.clip();
    pen.strokeStyle = page.dark ? "#777" : "#aaa";
    pen.fillStyle = page.dark ? "#ffffff18" : "#00000010";
    let end = t;
    while (inDegree(end, k, n) !== n - 1) end++; // of the block that t stands in
    for (; end > t - farthest - 1; end -= n - 1) {
      pen.beginPath();
      pen.roundRect(x(end - n + 1) - radius - 3, y - radius - 3, (n - 1) * across + 2 * radius + 6, 2 * radius + 6, 12);
      pen.fill();
      pen.stroke();
    }
    pen.restore();
    pen.strokeStyle = page.ink;
    for (let step = t - farthest; step <= t; step++) {
      pen.beginPath();
      pen.arc(x(step), y, radius, 0, 2 * Math.PI);
      pen.fillStyle = steps.includes(step) ? ORANGE : page.dark ? "#333" : "#fff";
      pen.fill();
      pen.stroke();
    }
    pen.strokeStyle = ORANGE;
    pen.lineWidth = 2.5;
    for (let i = 1; i < steps.length; i++) {
      const [from, to] = [x(steps[i]), x(steps[i - 1])];
      pen.beginPath();
      pen.moveTo(from, y - radius);
      pen.quadraticCurveTo((from + to) / 2, y - radius - 10 - 0.35 * (to - from), to, y - radius);
      pen.stroke();
    }
    pen.lineWidth = 1;
    pen.fillStyle = page.ink;
    pen.textAlign = "center";
    if (x(t) - x(t - distance) > 26) pen.fillText("t", x(t), y + radius + 14);
    pen.fillText(`t − ${distance}`, x(t - distance), y + radius + 14);
  }

  /** Edges over distance: this channel, all others, and what the paper says. */
  function drawPaths(pen, box, n, k, distance, t) {
    const distances = Array.from({ length: farthest }, (_, i) => i + 1);
    const lengths = (channel) => distances.map((d) => [d, path(t, channel, n, d).length - 1]);
    const all = Array.from({ length: n - 1 }, (_, i) => lengths(i + 1)), top = Math.max(4, ...all.flat().map(([, count]) => count)) + 1;
    const place = axes(pen, page, box, { x: [0, farthest], y: [0, top], title: "edges on the shortest path", across: "distance l" });
    for (const one of all) line(pen, place, one, { colour: SKY });
    line(pen, place, all[k - 1], { colour: BLUE });
    line(pen, place, distances.map((d) => [d, claimed(n, d)]), { colour: page.ink, dash: [3, 4] });
    mark(pen, place, distance, ORANGE);
    const entries = [[`channel ${k}`, BLUE], ["other channels", SKY], ["paper's bound", page.ink, [3, 4]]];
    legend(pen, page, box.x + 10, box.y + 8, n > 2 ? entries : [entries[0], entries[2]]);
    return all.map((one) => one[distance - 1][1]);
  }

  /** Measured gradients over distance, as powers of ten: this channel, and the smallest n there is. */
  function drawGradients(pen, box, n, k, distance) {
    const shown = { x: [0, farthest], y: [low, high], title: "gradient, share of that at l = 0", across: "distance l" };
    const place = axes(pen, page, box, { ...shown, yText: (one) => (one ? `1e${one}` : "1") });
    const points = (values) => values.map((value, d) => [d, value]);
    line(pen, place, points(measured[sizes[0]][0]), { colour: page.ink, dash: [3, 4] });
    line(pen, place, points(measured[n][k - 1]), { colour: BLUE });
    mark(pen, place, distance, ORANGE);
    const first = sizes[0] === 2 ? "n = 2, a plain RNN" : `n = ${sizes[0]}, channel 1`;
    legend(pen, page, box.x + 10, box.y + box.height - 30, [[`n = ${n}, channel ${k}`, BLUE], [first, page.ink, [3, 4]]]);
  }

  return ({ n: asked, channel: chosen, distance }) => {
    const n = nearest(asked);
    channel.max = n - 1;
    channel.disabled = n === 2;
    const k = Math.min(chosen, n - 1), t = stepOf(n, farthest), steps = path(t, k, n, distance);
    const { pen, width } = picture.begin(), half = width / 2, y = CHAIN + GAP;
    drawChain(pen, width, n, k, distance, steps);
    box = { x: 44, y, width: half - 74, height: PLOT - 40 };
    const lengths = drawPaths(pen, box, n, k, distance, t);
    drawGradients(pen, { ...box, x: half + 44 }, n, k, distance);
    const count = steps.length - 1, bound = claimed(n, distance), broken = count > bound;
    const verdict = broken ? `a counterexample: the paper's bound is ${bound}` : `the paper's bound, ${bound}, holds`;
    const others = n > 2 ? ` The channels need ${lengths.join(", ")}.` : "";
    const told = `n = ${n}, channel ${k}: back over ${distance} the shortest path has ${edges(count)}; ${verdict}.${others}`;
    picture.describe(told);
    return `${told} Of the gradient ${power(measured[n][k - 1][distance])} is left.`;
  };
}
