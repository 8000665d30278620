// Bach or machine? Pairs of tunes to hear; the reader says which one Bach wrote.

import { button, canvas, checkbox, put } from "./page.js";
import { bachs, drawCursor, drawNotes, drawOctaves, framesOf, held, machines, places, range } from "./roll.js";
import { turntable } from "./sound.js";

const NAMES = ["A", "B"], HIGH = 110, GAP = 30; // pixels

export function show(page) {
  const pairs = page.data.pairs.map(({ bach, tunes }) => ({ bach, tunes: tunes.map(framesOf) })), last = pairs.length - 1;
  const current = () => pairs[page.state.pair], isAnswered = () => page.state.answers.length > page.state.pair;
  const picture = canvas(page, { label: "two tunes, A above B; a click plays one" });
  const table = turntable(page.data, picture.element, () => draw());
  const plays = (i) => table.frame(NAMES[i]) !== undefined, start = (i, tune) => table.start(NAMES[i], held(tune), tune.length);
  const play = (i) => (plays(i) ? table.stop() : start(i, current().tunes[i]));
  picture.element.className = "held";
  picture.element.onclick = ({ offsetY }) => play(offsetY < HIGH + GAP ? 0 : 1);

  const players = NAMES.map((_, i) => button(page, "", () => play(i)));
  players.forEach((one) => (one.style.minWidth = "6em")); // the buttons beside it stay where they are
  const choices = NAMES.map((name, i) => button(page, `${name} is Bach`, () => {
    page.set({ answers: [...page.state.answers.slice(0, page.state.pair), i] });
    next.focus(); // the button that was pressed cannot be pressed again
  }));
  const next = button(page, "", () => {
    table.stop();
    page.set(page.state.pair === last ? page.start : { pair: page.state.pair + 1, notes: false });
    players[0].focus();
  });
  checkbox(page, "notes", { label: "show the notes" });

  function drawTune(pen, width, i) {
    const { tunes, bach } = current(), done = isAnswered();
    const place = places({ y: i * (HIGH + GAP) + GAP - 4, width, height: HIGH }, tunes[i].length, range(tunes.flat()));
    const { x, y } = place.box, colour = !done ? page.ink : i === bach ? bachs(page.dark) : machines(page.dark);
    pen.fillStyle = colour;
    pen.strokeStyle = page.faint;
    pen.font = "600 14px system-ui, sans-serif";
    pen.fillText(done ? `${NAMES[i]}: ${i === bach ? "Bach" : "the model"}` : NAMES[i], 4, y - 12);
    pen.strokeRect(x, y, place.box.width, HIGH);
    if (done || page.state.notes) {
      drawOctaves(pen, page, place);
      drawNotes(pen, place, held(tunes[i]), colour);
    } else if (!plays(i)) pen.fillText("▶ click to listen", x + 20, y + HIGH / 2);
    drawCursor(pen, page, place, table.frame(NAMES[i]));
  }
  function draw() {
    const { pen, width } = picture.begin(2 * (HIGH + GAP));
    NAMES.forEach((name, i) => {
      drawTune(pen, width, i);
      put(players[i], plays(i) ? "■ Stop" : `▶ Play ${name}`);
    });
  }

  /** How the game stands; at its end, also what a guesser would have. */
  function score(answers) {
    const right = answers.filter((one, i) => one === pairs[i].bach).length, share = 100 * page.data.chance[right];
    const guesser = ` That was the last pair. Somebody who only guesses has half of them right on average, and ${right} or ` +
      `more in ${share < 1 ? "under 1" : Math.round(share)} % of games.`;
    return answers.length ? ` You have ${right} of ${answers.length} right.${answers.length > last ? guesser : ""}` : "";
  }

  let heard = page.state.pair;
  return ({ pair, answers }) => {
    if (pair !== heard) [heard] = [pair], table.stop(); // by Reset, or by another address
    const { bach } = current(), done = isAnswered();
    choices.forEach((one) => (one.disabled = done));
    next.hidden = !done;
    next.textContent = pair === last ? "Start again" : "Next pair";
    draw();
    const asked = `Pair ${pair + 1} of ${pairs.length}: one of the tunes is by Bach. Listen to both, then choose.`;
    const told = `${answers[pair] === bach ? "Right" : "Wrong"}: ${NAMES[bach]} is by Bach.`;
    return `${done ? told : asked}${score(answers)}`;
  };
}
