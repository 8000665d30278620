// Bach or machine? Pairs of tunes to hear; the reader says which one Bach wrote.

import { button, canvas, checkbox } from "./page.js";
import { bachs, drawCursor, drawNotes, drawOctaves, framesOf, held, machines, places, range } from "./roll.js";
import { playButton, turntable } from "./sound.js";

const NAMES = ["A", "B"], HIDDEN = 56, SHOWN = 150, GAP = 30; // pixels

export function show(page) {
  const pairs = page.data.pairs.map(({ bach, tunes }) => ({ bach, tunes: tunes.map(framesOf) }));
  const current = () => pairs[page.state.pair] ?? pairs[0], isAnswered = () => page.state.answers.length > page.state.pair;
  const high = () => (isAnswered() || page.state.notes ? SHOWN : HIDDEN);
  const picture = canvas(page, { height: 2 * (HIDDEN + GAP), label: "" });
  const table = turntable(page.data, picture.element, () => draw());
  const plays = (i) => table.frame(NAMES[i]) !== undefined;
  function play(i) {
    if (plays(i)) return table.stop();
    table.start(NAMES[i], held(current().tunes[i]), current().tunes[i].length);
  }
  picture.element.className = "held";
  picture.element.onclick = ({ offsetY }) => play(offsetY < high() + GAP ? 0 : 1);

  const players = NAMES.map((name, i) => playButton(page, () => name, () => play(i)));
  const choices = NAMES.map((name, i) => button(page, `${name} is Bach`, () => {
    page.set({ answers: [...page.state.answers.slice(0, page.state.pair), i] });
    next.focus(); // the button that was pressed cannot be pressed again
  }));
  const isLast = () => page.state.pair === pairs.length - 1;
  const next = button(page, "", () => {
    table.stop();
    page.set(isLast() ? page.start : { pair: page.state.pair + 1, notes: false });
    picture.element.closest(".rtx-page").querySelector("button").focus();
  });
  checkbox(page, "notes", { label: "show the notes" });

  function draw() {
    const { tunes, bach } = current(), done = isAnswered(), keys = range(tunes.flat()), height = high();
    picture.resize(2 * (height + GAP));
    const { pen, width } = picture.begin();
    tunes.forEach((frames, i) => {
      const place = places({ y: i * (height + GAP) + GAP - 4, width, height }, frames.length, keys), { box } = place;
      const colour = i === bach ? bachs(page.dark) : machines(page.dark);
      pen.fillStyle = done ? colour : page.ink;
      pen.font = "600 14px system-ui, sans-serif";
      pen.fillText(done ? `${NAMES[i]}: ${i === bach ? "Bach" : "the model"}` : NAMES[i], 4, box.y - 12);
      pen.strokeStyle = page.faint;
      pen.strokeRect(box.x, box.y, box.width, box.height);
      pen.font = "13px system-ui, sans-serif";
      if (done || page.state.notes) {
        drawOctaves(pen, page, place);
        drawNotes(pen, place, held(frames), () => (done ? colour : page.ink));
      } else if (!plays(i)) {
        pen.textAlign = "center";
        pen.fillText("▶ click to listen", box.x + box.width / 2, box.y + height / 2);
        pen.textAlign = "left";
      }
      drawCursor(pen, page, place, table.frame(NAMES[i]));
    });
    players.forEach((put, i) => put(plays(i)));
  }

  /** How the game stands; at its end, also what a guesser would have. */
  function score(answers) {
    const right = answers.filter((one, i) => one === pairs[i].bach).length, count = answers.length, { chance } = page.data;
    if (!count) return "";
    if (count < pairs.length) return ` You have ${right} of ${count} right.`;
    return ` That was the last pair: you have ${right} of ${count} right. Somebody who only guesses has half of them right on average, ` +
      `and ${right} or more in ${chance[right] < 0.01 ? "under 1" : Math.round(100 * chance[right])} % of games.`;
  }

  return ({ pair, answers }) => {
    const { bach } = current(), done = isAnswered();
    choices.forEach((one) => (one.disabled = done));
    next.hidden = !done;
    next.textContent = isLast() ? "Start again" : "Next pair";
    draw();
    const labels = NAMES.map((name, i) => (done ? `${name} is ${i === bach ? "by Bach" : "by the model"}` : name));
    picture.describe(`Two tunes: ${labels.join(", ")}.`);
    const asked = `Pair ${pair + 1} of ${pairs.length}: one of the tunes is by Bach. Listen to both, then choose.`;
    const told = `${answers[pair] === bach ? "Right" : "Wrong"}: ${NAMES[bach]} is by Bach.`;
    return `${done ? told : asked}${score(answers)}`;
  };
}
