// The listening room: tunes to look at, hear and take away; what each frame cost a model; and a blind test.

import { css, diverging } from "./colours.js";
import { canvas, checkbox, select } from "./page.js";
import { midi, play, RELEASE } from "./sound.js";

const HEIGHT = 236, STRIP = 16, LEFT = 30, BELOW = 42; // in CSS pixels; below the strip stand frames and a legend
const KINDS = ["real", "generated"];

/** A row of buttons of our own, beside the controls of the frame. */
function button(page, name, label, press) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", textContent: label, onclick: press });
  page.control(name, () => {}, made);
  return made;
}

/** Numbers of frames below the strip, and what its colours mean: from 0 to the dearest frame of all tunes. */
function drawScale(pen, page, x, y, frames, most) {
  const apart = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((one) => frames / one <= 12) ?? 1000;
  pen.textAlign = "center";
  for (let frame = apart; frame <= frames; frame += apart) pen.fillText(frame, x(frame - 0.5), y + 9);
  pen.textAlign = "left";
  pen.fillText("frame", 0, y + 9);
  if (!most) return;
  pen.fillText("0", LEFT, y + 29);
  pen.fillText(`${most.toFixed(1)} nats`, LEFT + 118, y + 29);
  for (let i = 0; i < 100; i++) {
    pen.fillStyle = css(diverging(i / 99, page.dark));
    pen.fillRect(LEFT + 12 + i, y + 23, 1.5, 10);
  }
}

/**
 * The notes as bars over a strip whose colour says what each frame cost, as a share of `most`, and a cursor at `frame`
 * if there is one. Without `most`, no costs.
 */
function draw({ pen, width, height }, page, tune, frame, most) {
  height -= BELOW;
  const keys = tune.notes.map(([key]) => key);
  const bottom = Math.min(87, ...keys) - 2, top = Math.max(0, ...keys) + 3;
  const step = (width - LEFT) / tune.frames, row = (height - STRIP - 6) / (top - bottom);
  const x = (at) => LEFT + at * step, y = (key) => height - STRIP - 6 - (key - bottom) * row;
  pen.font = "11px sans-serif";
  for (let key = bottom; key < top; key++)
    if ((page.data.lowest + key) % 12 === 0 && y(key) - row / 2 > 6) pen.fillText(`C${(page.data.lowest + key) / 12 - 1}`, 4, y(key) - row / 2);
  pen.fillStyle = page.dark ? "#56b4e9" : "#0173b2";
  for (const [key, start, end] of tune.notes) pen.fillRect(x(start), y(key + 1), Math.max(1, x(end) - x(start) - 1), row);
  if (most) tune.nll.forEach((cost, at) => {
    pen.fillStyle = css(diverging(at ? cost / most : 0, page.dark)); // the first frame was not predicted
    pen.fillRect(x(at), height - STRIP, Math.ceil(step), STRIP);
  });
  pen.fillStyle = page.ink;
  drawScale(pen, page, x, height, tune.frames, most);
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

/** Which tune is chosen: in the blind test they stand in another order, which is drawn anew each time. */
const place = ({ tune, blind, order }) => (blind ? order[tune] ?? tune : tune);

/** Whether nothing may tell yet what a tune is. */
const isSecret = (state) => state.blind && !(place(state) in state.guesses);

function shuffled(count) {
  const order = [...Array(count).keys()];
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

function sentence({ tunes }, state) {
  const { tune, blind, guesses } = state, chosen = tunes[place(state)], guess = guesses[place(state)];
  const right = tunes.filter((one, i) => guesses[i] === one.kind).length, made = Object.keys(guesses).length;
  if (isSecret(state)) return `Tune ${tune + 1}: real or generated? Listen, and guess.`;
  const result = blind ? `${chosen.name} is ${chosen.kind}: you are ${guess === chosen.kind ? "right" : "wrong"}, ` +
    `${right} of ${made} so far.` : `${chosen.name}: ${chosen.frames} frame${chosen.frames === 1 ? "" : "s"}, ${chosen.kind}.`;
  if (!chosen.nll) return result;
  const costs = chosen.nll.slice(1), mean = costs.reduce((a, b) => a + b, 0) / costs.length;
  return `${result} ${mean.toFixed(2)} nats a frame; the dearest, frame ${costs.indexOf(Math.max(...costs)) + 2}, ` +
    `${Math.max(...costs).toFixed(1)}.`;
}

export function show(page) {
  const { tunes, lowest, seconds } = page.data;
  const most = Math.max(0, ...tunes.flatMap(({ nll }) => nll?.slice(1) ?? []));
  let state, playing = null, next = 0;
  const chosen = () => tunes[place(state)];
  const choice = select(page, "tune", { label: "tune", options: tunes.map((one, i) => [i, one.name]) });
  const again = () => page.set({ blind: true, order: shuffled(tunes.length), guesses: {}, tune: 0 });
  if (KINDS.every((kind) => tunes.some((one) => one.kind === kind))) {
    const box = checkbox(page, "blind", { label: "blind test" });
    box.onchange = () => (box.checked ? again() : page.set({ blind: false, tune: place(state) }));
  }
  const player = button(page, "play", "▶ Play", () => (playing ? stop() : start()));
  button(page, "save", "Save MIDI", () =>
    save(page, chosen(), isSecret(state) ? `tune ${state.tune + 1}` : chosen().name));
  const answers = KINDS.map((kind) => button(page, kind, kind, () => {
    page.set({ guesses: { ...state.guesses, [place(state)]: kind } });
    choice.focus(); // this button goes, and would leave the keyboard nowhere
  }));
  const renew = button(page, "again", "again", again);
  const picture = canvas(page, {
    height: HEIGHT,
    label: "a tune as a piano roll, with what each frame cost",
    point(x) {
      const { frames, nll } = chosen();
      const frame = Math.floor(((x - LEFT) / (picture.element.clientWidth - LEFT)) * frames);
      return nll && !isSecret(state) && frame > 0 && frame < frames ? `frame ${frame + 1}: ${nll[frame].toFixed(2)} nats` : "";
    },
  });

  const redraw = () => {
    const time = playing?.time();
    if (time > chosen().frames * seconds + RELEASE) return stop();
    const frame = time === undefined ? undefined : time / seconds;
    draw(picture.begin(), page, chosen(), frame, isSecret(state) ? 0 : most); // costs would tell
    if (playing && picture.element.isConnected) next = requestAnimationFrame(redraw);
    else if (playing) stop(); // taken off the page
  };
  function start() {
    playing = play(notes(chosen()), lowest, seconds);
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
    if (playing && place(state) !== place(now)) {
      state = now;
      stop();
    }
    state = now;
    [...choice.options].forEach((option, i) => (option.textContent = now.blind ? `tune ${i + 1}` : tunes[i].name));
    answers.forEach((one) => (one.hidden = !now.blind || place(now) in now.guesses));
    renew.hidden = !now.blind;
    if (!playing) redraw();
    return sentence(page.data, now);
  };
}
