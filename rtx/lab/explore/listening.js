// The listening room: tunes to look at, hear and take away; what each frame cost a model; and a blind test.

import { canvas, checkbox, css, diverging, select } from "./page.js";
import { midi, play, RELEASE } from "./sound.js";

const HEIGHT = 200, STRIP = 16, LEFT = 30; // in CSS pixels
const KINDS = ["real", "generated"];

/** A row of buttons of our own, beside the controls of the frame. */
function button(page, name, label, press) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", textContent: label, onclick: press });
  page.control(name, () => {}, made);
  return made;
}

/** The notes as bars over a strip whose colour says what each frame cost, and a cursor at `frame` if there is one. */
function draw({ pen, width, height }, page, tune, frame, secret) {
  const keys = tune.notes.map(([key]) => key);
  const bottom = Math.min(87, ...keys) - 2, top = Math.max(0, ...keys) + 3;
  const step = (width - LEFT) / tune.frames, row = (height - STRIP - 6) / (top - bottom);
  const x = (at) => LEFT + at * step, y = (key) => height - STRIP - 6 - (key - bottom) * row;
  pen.font = "11px sans-serif";
  for (let key = bottom; key < top; key++)
    if ((page.data.lowest + key) % 12 === 0) pen.fillText(`C${(page.data.lowest + key) / 12 - 1}`, 4, y(key) - row / 2);
  pen.fillStyle = page.dark ? "#56b4e9" : "#0173b2";
  for (const [key, start, end] of tune.notes) pen.fillRect(x(start), y(key + 1), Math.max(1, x(end) - x(start) - 1), row);
  const costs = secret ? [] : tune.nll ?? [], most = Math.max(...costs.slice(1), 1e-9); // costs would tell
  costs.forEach((cost, at) => {
    pen.fillStyle = css(diverging(at ? cost / most : 0, page.dark)); // the first frame was not predicted
    pen.fillRect(x(at), height - STRIP, Math.ceil(step), STRIP);
  });
  if (frame === undefined) return;
  pen.fillStyle = "#de8f05";
  pen.fillRect(x(frame) - 1, 0, 2, height);
}

const notes = (tune) => tune.notes.map(([key, start, end]) => ({ key, start, end }));

function save(page, tune, name) {
  const { lowest, seconds } = page.data;
  const address = URL.createObjectURL(new Blob([midi(notes(tune), lowest, seconds)], { type: "audio/midi" }));
  Object.assign(document.createElement("a"), { href: address, download: `${name}.mid` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Whether nothing may tell yet what a tune is. */
const isSecret = ({ tune, blind, guesses }) => blind && !(tune in guesses);

function sentence({ tunes }, { tune, blind, guesses }) {
  const chosen = tunes[tune], guess = guesses[tune];
  const right = tunes.filter((one, i) => guesses[i] === one.kind).length, made = Object.keys(guesses).length;
  if (isSecret({ tune, blind, guesses })) return `Tune ${tune + 1}: real or generated? Listen, and guess.`;
  const result = blind ? `${chosen.name} is ${chosen.kind}: you are ${guess === chosen.kind ? "right" : "wrong"}, ` +
    `${right} of ${made} so far.` : `${chosen.name}: ${chosen.frames} frames, ${chosen.kind}.`;
  if (!chosen.nll) return result;
  const costs = chosen.nll.slice(1), mean = costs.reduce((a, b) => a + b, 0) / costs.length;
  return `${result} ${mean.toFixed(2)} nats a frame; the dearest, frame ${costs.indexOf(Math.max(...costs)) + 2}, ` +
    `${Math.max(...costs).toFixed(1)}.`;
}

export function show(page) {
  const { tunes, lowest, seconds } = page.data;
  let state, playing = null, next = 0;
  const choice = select(page, "tune", { label: "tune", options: tunes.map((one, i) => [i, one.name]) });
  if (KINDS.every((kind) => tunes.some((one) => one.kind === kind))) checkbox(page, "blind", { label: "blind test" });
  const player = button(page, "play", "▶ Play", () => (playing ? stop() : start()));
  button(page, "save", "Save MIDI", () =>
    save(page, tunes[state.tune], isSecret(state) ? `tune ${state.tune + 1}` : tunes[state.tune].name));
  const answers = KINDS.map((kind) => button(page, kind, kind, () =>
    page.set({ guesses: { ...state.guesses, [state.tune]: kind } })));
  const picture = canvas(page, {
    height: HEIGHT,
    label: "a tune as a piano roll, with what each frame cost",
    point(x) {
      const { frames, nll } = tunes[state.tune];
      const frame = Math.floor(((x - LEFT) / (picture.element.clientWidth - LEFT)) * frames);
      return nll && !isSecret(state) && frame > 0 && frame < frames ? `frame ${frame + 1}: ${nll[frame].toFixed(2)} nats` : "";
    },
  });

  const redraw = () => {
    const time = playing?.time();
    if (time > tunes[state.tune].frames * seconds + RELEASE) return stop();
    draw(picture.begin(), page, tunes[state.tune], time === undefined ? undefined : time / seconds, isSecret(state));
    if (playing && picture.element.isConnected) next = requestAnimationFrame(redraw);
    else if (playing) stop(); // taken off the page
  };
  function start() {
    playing = play(notes(tunes[state.tune]), lowest, seconds);
    player.textContent = "■ Stop";
    redraw();
  }
  function stop() {
    cancelAnimationFrame(next);
    playing?.stop();
    playing = null;
    player.textContent = "▶ Play";
    redraw();
  }
  return (now) => {
    if (playing && state.tune !== now.tune) {
      state = now;
      stop();
    }
    state = now;
    [...choice.options].forEach((option, i) => (option.textContent = now.blind ? `tune ${i + 1}` : tunes[i].name));
    answers.forEach((one) => (one.hidden = !now.blind || now.tune in now.guesses));
    if (!playing) redraw();
    return sentence(page.data, now);
  };
}
