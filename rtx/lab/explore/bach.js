// The Bach room: a tune that a model continues. The reader changes notes, moves the place where the model takes over,
// and switches LocalRNN and attention off. Wang et al. (2019), R-Transformer, §4.2.

import { axes, bitmap, disc, heatMap, SERIES } from "./chart.js";
import { grow, load, plant, read } from "./network.js";
import { arrows, button, canvas, checkbox, put, slider } from "./page.js";
import { bachs, drawCursor, drawNotes, drawOctaves, framesOf, held, LEFT, machines, noteName, places, range } from "./roll.js";
import { turntable } from "./sound.js";
import { sigmoid } from "./tensor.js";

const RULER = 26, ARCS = 24, ROW = 6, GAP = 26, STRIP = 60, BELOW = 40; // pixels, from above
const FRAME = 10; // pixels: the least width of a frame
const NEAR = 6, STILL = 4; // pixels: a press this near to the border takes hold of it; a click moves at most so far
const LEAST = 4, KEPT = 4000, AT_ONCE = 8; // frames: of a copied passage, that a reader keeps, that it reads at once

/** What a frame costs in nats: the sum over its keys. */
const frameCost = (logits, frame) =>
  logits.reduce((sum, logit, key) => sum + Math.log1p(Math.exp(frame[key] ? -logit : logit)), 0);

/** A number from 0 to 1 by chance, which a change elsewhere in the tune leaves as it is. */
const chance = (seed, frame, key) => ((Math.sin(12.9898 * seed + 78.233 * frame + 37.719 * key) * 43758.5453) % 1 + 1) % 1;

/**
 * A reader of tunes, with the layers in `off` switched off. It keeps what it has read as a tree, so that a tune which
 * begins like an earlier one costs only what is new. `frameOf(t, expected)` gives a frame, which may depend on the logits
 * that the model expects. Returns each frame with these logits and its cost. It reads AT_ONCE new frames, so that a
 * picture does not wait; the frames after them are those of the last tune, and are `late`.
 */
function reader(model, off) {
  let tree = plant(), known = new Map(), tune = [];
  return (count, frameOf) => {
    if (known.size > KEPT) [tree, known] = [plant(), new Map()];
    let node = -1, logits, left = tune.length ? AT_ONCE : Infinity;
    return tune = Array.from({ length: count }, (_, t) => {
      const frame = frameOf(t, logits), expected = logits, place = `${node} ${frame}`;
      if (left < 0 || (!known.has(place) && !left--)) return { ...tune[t], late: true };
      if (!known.has(place)) {
        node = grow(tree, frame, node);
        known.set(place, { node, logits: read(model, tree, [node], { off })[0] });
      }
      ({ node, logits } = known.get(place));
      return { frame, expected, cost: t && frameCost(expected, frame) };
    });
  };
}

/** Passages that are equal to earlier ones: where they are, where their source is, and how long. */
export function copies(frames) {
  const names = frames.map(String), found = [];
  for (let at = LEAST; at <= names.length - LEAST; at++) {
    let best = { length: LEAST - 1 };
    for (let source = 0; source < at; source++) {
      let length = 0;
      while (at + length < names.length && source + length < at && names[at + length] === names[source + length]) length++;
      const moves = new Set(names.slice(at, at + length)).size > 1; // a chord that is held is no passage
      if (moves && length > best.length) best = { at, source, length };
    }
    if (best.length < LEAST) continue;
    found.push(best);
    at += best.length - 1;
  }
  return found;
}

export function show(page) {
  const { lowest, author, most, switches } = page.data, base = framesOf(page.data.tune), T = base.length, usual = range(base, 6);
  const model = load(page.data.network, page.weights), readers = {};
  let seen = [], frames = [], copied = [], place, strip, played = "", chosen, later, pressed, isDrag, borderIsHeld = false;

  const border = () => Math.min(T, Math.max(1, page.state.begin - 1)); // the first frame that the model writes, from 0
  const isBorder = (x, y) => y < RULER || Math.abs(x - place.x(border())) < NEAR;
  const offOf = (state) => model.layers.filter(({ kind }) => state[kind] === false).map(({ name }) => name);

  // The state's edits are numbers: 88 t + key + 1 for a note that was added, and minus that for one taken away.
  const cellOf = (edit) => [Math.floor((Math.abs(edit) - 1) / 88), (Math.abs(edit) - 1) % 88];
  function toggled(t, key) {
    const sounds = !seen[t].frame[key], edit = 88 * t + key + 1;
    const others = page.state.edits.filter((one) => Math.abs(one) !== edit);
    if (sounds && !plays()) setTimeout(() => table.start("note", [{ key, start: 0, end: 1 }], 1)); // once it is drawn
    const isBack = others.length < page.state.edits.length;
    return { edits: isBack ? others : [...others, sounds ? edit : -edit], frame: t + 1, note: lowest + key };
  }
  function frameOf(t, logits) {
    const { seed, temperature, edits } = page.state;
    const draw = (logit, key) => Number(chance(seed, t, key) < sigmoid(logit / temperature));
    const frame = t < border() ? base[t].slice() : Uint8Array.from(logits, draw);
    for (const edit of edits) if (cellOf(edit)[0] === t) frame[cellOf(edit)[1]] = Number(edit > 0);
    return frame;
  }

  const picture = canvas(page, {
    label: "piano roll: arrows move the cursor, space changes a note",
    told: () => told(page.state.frame - 1, page.state.note - lowest),
    hint: "Drag the border: the model writes what is right of it. Bars: what each frame costs the model. Box: the chosen frame.",
    point(x, y) {
      picture.element.style.cursor = borderIsHeld || isBorder(x, y) ? "ew-resize" : "";
      const t = place.frame(x), key = place.key(y);
      return t >= 0 && t < T && key <= place.high && told(t, key < place.low ? undefined : key);
    },
    grab(x, y, first) {
      if (first) [pressed, isDrag, borderIsHeld] = [[x, y], y < RULER, isBorder(x, y)];
      isDrag ||= Math.hypot(x - pressed[0], y - pressed[1]) > STILL;
      if (isDrag && borderIsHeld) return { begin: Math.min(T + 1, Math.max(2, Math.round((x - LEFT) / place.across) + 1)) };
    },
    key(name) {
      const { frame, note } = page.state;
      if (name === " ") return toggled(frame - 1, note - lowest);
      return arrows(name, ["frame", frame, 1, T], ["note", note, lowest, lowest + 87]);
    },
  });
  const table = turntable(page.data, picture.element, () => draw()), plays = () => table.frame("tune") !== undefined;
  const playFrom = (frame) => table.start("tune", held(frames), T, frame);
  page.longest = 1900;
  picture.element.style.touchAction = "manipulation"; // a tap changes a note, a finger moves the page
  picture.element.addEventListener("touchstart", (event) => { // or the border, in the ruler
    if (event.touches[0].clientY - picture.element.getBoundingClientRect().top < RULER) event.preventDefault();
  }, { passive: false });
  picture.element.onclick = ({ offsetX: x, offsetY: y }) => {
    const t = place.frame(x), key = place.key(y);
    borderIsHeld = false;
    if (t < 0 || t >= T || isDrag || key > place.high) return;
    page.set(key < place.low ? { frame: t + 1 } : toggled(t, key));
  };

  const player = button(page, "", () => (plays() ? table.stop() : playFrom(page.state.frame - 1)));
  player.style.minWidth = "11em"; // the button beside it stays where it is
  const onwards = button(page, "", () => page.set({ begin: Math.max(2, page.state.frame) }));
  const again = button(page, "Draw again", () => page.set({ seed: page.state.seed + 1 }));
  for (const [kind, label] of Object.entries(switches)) checkbox(page, kind, { label });
  slider(page, "temperature", { min: 0.1, max: 2, step: 0.1, text: (value) => value.toFixed(1) });
  checkbox(page, "expected", { label: "what it expected" });

  /** What a frame costs, and what the model expected of a key in it, if one is given, in words. */
  function told(t, key) {
    const { frame, expected, cost, whole } = seen[t];
    const besides = offOf(page.state).length ? `; with nothing switched off, ${whole.toFixed(2)}` : "";
    const costs = t ? `Frame ${t + 1} costs ${cost.toFixed(2)} nats${besides}.` : "Frame 1.";
    const sounds = key !== undefined ? ` ${noteName(lowest + key)}: ${frame[key] ? "sounds" : "is silent"}.` : "";
    const p = sounds && t ? ` The model expected the note with probability ${sigmoid(expected[key]).toFixed(2)}.` : "";
    return costs + sounds + p;
  }

  function drawRuler(pen, width) {
    const x = place.x(border()), bottom = place.box.y + place.box.height;
    pen.font = "600 13px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillStyle = bachs(page.dark);
    if (x > 14 + pen.measureText(author).width) pen.fillText(author, x - 14, RULER / 2);
    pen.textAlign = "left";
    pen.fillStyle = machines(page.dark);
    if (x < width - 14 - pen.measureText("the model").width) pen.fillText("the model", x + 14, RULER / 2);
    pen.fillRect(x - 1, RULER / 2, 2, bottom - RULER / 2);
    disc(pen, x, RULER / 2, 8);
  }
  function drawCopies(pen) {
    const y = RULER + ARCS - 5;
    pen.strokeStyle = pen.fillStyle = SERIES[2];
    pen.lineWidth = 1.5;
    for (const { at, source, length } of copied) {
      for (const one of [at, source]) pen.fillRect(place.x(one), y, place.across * length - 1, 4);
      const [left, right] = [source, at].map((one) => place.x(one + length / 2));
      pen.beginPath();
      pen.moveTo(left, y);
      pen.quadraticCurveTo((left + right) / 2, RULER - 14, right, y);
      pen.stroke();
    }
  }
  function drawExpected(pen) {
    const shade = (logit) => [128, 128, 128, 204 * sigmoid(logit)];
    const { box, low, high } = place;
    heatMap(pen, box, bitmap(high - low + 1, T, (i, t) => t && shade(seen[t].expected[high - i])));
  }
  function drawCells(pen, { edits, frame, note }) {
    pen.strokeStyle = page.ink;
    pen.lineWidth = 1.5;
    const cell = ([t, key], room) =>
      pen.strokeRect(place.x(t) - room, place.y(key) - room, place.across + 2 * room - 1, place.down + 2 * room);
    for (const edit of edits) cell(cellOf(edit), 0);
    pen.strokeRect(place.x(frame - 1), strip.box.y, place.across, STRIP);
    if (document.activeElement === picture.element) cell([frame - 1, note - lowest], 2);
  }
  function drawStrip(pen, isSwitched) {
    const high = (cost) => Math.max(strip.box.y, Math.min(strip.y(cost), strip.y(0) - 1));
    seen.forEach(({ cost, whole }, t) => {
      if (!t) return; // the first frame was not predicted
      pen.fillStyle = (t < border() ? bachs : machines)(page.dark);
      pen.fillRect(place.x(t), high(cost), Math.max(1, place.across - 1), strip.y(0) - high(cost));
      pen.fillStyle = page.ink;
      if (isSwitched) pen.fillRect(place.x(t), high(whole) - 1, place.across, 2);
    });
  }

  function draw() {
    const { state } = page, [low, high] = range(frames, 1), keys = [Math.min(usual[0], low), Math.max(usual[1], high)];
    const tall = ROW * (keys[1] - keys[0] + 1), isSwitched = offOf(state).length > 0;
    const { pen, width } = picture.begin(RULER + ARCS + tall + GAP + STRIP + BELOW, LEFT + FRAME * T);
    place = places({ y: RULER + ARCS, width, height: tall }, T, keys);
    strip = axes(pen, page, { ...place.box, y: place.box.y + tall + GAP, height: STRIP }, {
      x: [0.5, T + 0.5], y: [0, most], up: "nats", across: "frame",
      title: isSwitched ? "short lines: nothing switched off" : "",
    });
    drawOctaves(pen, page, place);
    if (state.expected) drawExpected(pen);
    drawNotes(pen, place, held(frames, 0, border()), bachs(page.dark));
    drawNotes(pen, place, held(frames, border()), machines(page.dark));
    drawStrip(pen, isSwitched);
    drawCopies(pen);
    drawRuler(pen, width);
    drawCells(pen, state);
    drawCursor(pen, page, place, table.frame("tune"));
    put(player, plays() ? "■ Stop" : `▶ Play from frame ${state.frame}`);
  }

  /** Bring a newly chosen frame into view, on a page that is scrolled. */
  function follow(frame) {
    if (frame === chosen) return;
    chosen = frame;
    const box = picture.element.parentElement, x = place.x(frame - 1) - box.scrollLeft;
    if (x < -place.across || x > box.clientWidth) box.scrollLeft += x - box.clientWidth / 2;
  }

  function sentence({ begin, edits, ...state }) {
    const off = Object.keys(switches).filter((kind) => !state[kind]).map((kind) => switches[kind]).join(" and ");
    const who = `${border() > 1 ? `Frames 1 to ${border()} are` : "Frame 1 is"} ${author}'s${begin > T ? "" : ", the rest is the model's"}`;
    const changed = edits.length ? `; notes that you changed: ${edits.length}` : "";
    const original = seen.slice(1, border()); // no others: with a layer off, the model writes another tune
    const nats = (name) => (original.reduce((sum, one) => sum + one[name], 0) / original.length).toFixed(2);
    const whole = off ? ` without ${off}, and ${nats("whole")} with nothing switched off` : "";
    const costs = original.length ? ` Left of the border, a frame costs the model ${nats("cost")} nats on average${whole}.` : "";
    const repeats = copied.map(({ at, source, length }) =>
      ` Frames ${at + 1}–${at + length} repeat ${source + 1}–${source + length}.`);
    return `${who}${changed}.${costs}${repeats.join("")}`;
  }

  return (state) => {
    const heard = (off, frameOf) => (readers[off] ??= reader(model, off))(T, frameOf);
    const off = offOf(state), switched = heard(off, frameOf), whole = off.length ? heard([], (t) => switched[t].frame) : switched;
    seen = switched.map((one, t) => ({ ...one, whole: whole[t].cost }));
    frames = seen.map(({ frame }) => frame);
    copied = copies(frames);
    onwards.textContent = `Continue from frame ${Math.max(2, state.frame)}`;
    again.disabled = state.begin > T;
    clearTimeout(later);
    later = [switched, whole].some((tune) => tune.at(-1).late) && setTimeout(page.draw, 16);
    draw();
    follow(state.frame);
    if (!later && String(frames) !== played) {
      played = String(frames);
      if (plays()) playFrom(table.frame("tune")); // with the notes that the tune has now
    }
    return sentence(state);
  };
}
