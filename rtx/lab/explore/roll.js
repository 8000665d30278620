// Piano rolls on a canvas. A frame is a row of 88 numbers, 1 where a key sounds.

import { line } from "./chart.js";

/** The colours of notes by who wrote them. */
export const bachs = (dark) => (dark ? "#56b4e9" : "#0173b2");
export const machines = (dark) => (dark ? "#f0a63c" : "#ad5f00");
export const LEFT = 34, RIGHT = 8; // pixels for the names of octaves, and for half a number below the end

const NAMES = ["C", "C♯", "D", "D♯", "E", "F", "F♯", "G", "G♯", "A", "A♯", "B"];
/** A MIDI number as a note: 60 is C4. */
export const noteName = (midi) => `${NAMES[midi % 12]}${Math.floor(midi / 12) - 1}`;

/** Lists of keys, one for each frame, as frames. */
export const framesOf = (lists) => lists.map((keys) => Uint8Array.from({ length: 88 }, (_, key) => Number(keys.includes(key))));

/** The notes from one frame to another: a key that sounds in successive frames is one long note. */
export function held(frames, from = 0, to = frames.length) {
  const notes = [];
  for (let key = 0; key < 88; key++)
    for (let end, start = from; start < to; start = end) {
      for (end = start + 1; end < to && frames[start][key] && frames[end][key]; end++);
      if (frames[start][key]) notes.push({ key, start, end });
    }
  return notes;
}

/** The lowest and highest key to show, with `room` around those that sound. */
export function range(frames, room = 3) {
  const used = [...Array(88).keys()].filter((key) => frames.some((frame) => frame[key]));
  return used.length ? [Math.max(0, used[0] - room), Math.min(87, used.at(-1) + room)] : [20, 60];
}

/** Where `count` frames and the keys are in a picture, and back: `x` is a frame's left edge, `y` a key's upper one. */
export function places({ y, width, height }, count, [low, high]) {
  const box = { x: LEFT, y, width: width - LEFT - RIGHT, height };
  const across = box.width / count, down = box.height / (high - low + 1);
  return {
    box, across, down, low, high, count,
    x: (frame) => box.x + frame * across,
    y: (key) => box.y + (high - key) * down,
    frame: (x) => Math.floor((x - box.x) / across),
    key: (y) => high - Math.floor((y - box.y) / down),
  };
}

/** A line and a name at each C. */
export function drawOctaves(pen, page, { box, low, high, y, down }) {
  pen.font = "11px system-ui, sans-serif";
  for (let key = low; key <= high; key++) {
    if ((page.data.lowest + key) % 12) continue;
    pen.fillStyle = page.faint;
    pen.fillRect(box.x, y(key) + down, box.width, 1);
    pen.fillStyle = page.ink;
    pen.fillText(noteName(page.data.lowest + key), 4, y(key) + down / 2);
  }
}

/** Notes as bars of a colour. */
export function drawNotes(pen, { x, y, down }, notes, colour) {
  pen.fillStyle = colour;
  for (const { key, start, end } of notes)
    pen.fillRect(x(start), y(key), Math.max(1, x(end) - x(start) - 1), Math.max(2, down - 0.5));
}

/** A line at the frame that sounds now, if one does. */
export function drawCursor(pen, page, place, frame) {
  if (frame === undefined) return;
  const x = place.x(Math.min(frame, place.count)), { y, height } = place.box;
  line(pen, [[x, y], [x, y + height]], { strokeStyle: page.dark ? "#ff78aa" : "#be005a", lineWidth: 1.5 });
}
