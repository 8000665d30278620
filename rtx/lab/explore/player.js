// Plays a piano roll: a canvas with its notes and a cursor, a button.

import { play, RELEASE } from "./sound.js";

const KEYS = 88;
const ROW = KEYS / 8; // bytes of a frame: a bit per key, the lowest key first, as numpy.packbits writes them
const HEIGHT = 180; // of the canvas, in CSS pixels

/** The notes of a roll, in frames. A key that sounds in successive frames is one long note. */
function readNotes(bytes) {
  const frames = bytes.byteLength / ROW, notes = [];
  const sounds = (frame, key) =>
    frame < frames && (bytes.getUint8(frame * ROW + (key >> 3)) >> (7 - (key & 7))) & 1;
  for (let key = 0; key < KEYS; key++)
    for (let frame = 0; frame < frames; frame++) {
      if (!sounds(frame, key)) continue;
      const start = frame;
      while (sounds(frame, key)) frame++;
      notes.push({ key, start, end: frame });
    }
  return { frames, notes };
}

/** Draw the roll, with a line at every C, and a cursor at `frame` if there is one. */
function draw(canvas, { frames, notes }, lowest, frame) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = "white";
  pen.fillRect(0, 0, width, HEIGHT);

  const keys = notes.map((note) => note.key);
  const bottom = Math.min(KEYS - 1, ...keys) - 2, top = Math.max(0, ...keys) + 3;
  const left = 30, step = (width - left) / frames, row = HEIGHT / (top - bottom);
  const x = (frame) => left + frame * step, y = (key) => HEIGHT - (key - bottom) * row;
  pen.font = "11px sans-serif";
  for (let key = bottom; key < top; key++) {
    if ((lowest + key) % 12) continue;
    pen.fillStyle = "#ccc";
    pen.fillRect(left, y(key) - row / 2, width - left, 1);
    pen.fillStyle = "#555";
    pen.fillText(`C${(lowest + key) / 12 - 1}`, 4, y(key) - row / 2 + 4);
  }
  pen.fillStyle = "#0173b2";
  for (const { key, start, end } of notes)
    pen.fillRect(x(start), y(key + 1), Math.max(1, x(end) - x(start) - 1), row);
  if (frame === undefined) return;
  pen.fillStyle = "#de8f05";
  pen.fillRect(x(frame) - 1, 0, 2, HEIGHT);
}

export function render({ model, el }) {
  const canvas = document.createElement("canvas");
  const button = document.createElement("button");
  const clock = document.createElement("span");
  canvas.style = `display: block; width: 100%; max-width: 720px; height: ${HEIGHT}px; border: 1px solid #ccc`;
  button.type = "button";
  button.style = "margin: 6px 10px 6px 0; padding: 4px 14px; font-size: 14px; cursor: pointer";
  clock.style = "font-variant-numeric: tabular-nums";
  canvas.setAttribute("role", "img");
  button.dataset.lmSuppressShortcuts = "true"; // else JupyterLab takes its keys for commands
  el.append(canvas, button, clock);

  let roll, playing = null, next = 0;
  const title = () => model.get("title");

  function show() {
    const seconds = model.get("frame_seconds"), total = roll.frames * seconds;
    if (playing?.time() > total + RELEASE) stop();
    const time = Math.min(playing?.time() ?? 0, total);
    draw(canvas, roll, model.get("lowest"), playing ? time / seconds : undefined);
    clock.textContent = `${time.toFixed(1)} of ${total.toFixed(1)} s`;
    cancelAnimationFrame(next);
    if (playing) next = requestAnimationFrame(show);
  }
  function label() {
    button.textContent = playing ? "■ Stop" : "▶ Play";
    button.setAttribute("aria-label", `${playing ? "Stop" : "Play"} ${title()}`);
  }
  function stop() {
    playing?.stop();
    playing = null;
    label();
  }
  function load() {
    stop();
    roll = readNotes(model.get("notes"));
    const size = `${roll.frames} frames, ${roll.notes.length} notes`;
    canvas.setAttribute("aria-label", `Piano roll of ${title()}: ${size}`);
    show();
  }
  button.onclick = () => {
    if (playing) stop();
    else playing = play(roll.notes, model.get("lowest"), model.get("frame_seconds"));
    label();
    show();
  };
  load();
  model.on("change:notes", load);
  const resized = new ResizeObserver(() => playing || show());
  resized.observe(canvas);
  return () => {
    stop();
    resized.disconnect();
    model.off("change:notes", load);
  };
}
