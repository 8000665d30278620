// A piano roll to hear: click a place, and it plays from there.

import { canvas, stepped } from "./page.js";
import { bachs, drawCursor, drawNotes, drawOctaves, framesOf, held, LEFT, places, range } from "./roll.js";
import { playButton, saveButton, turntable } from "./sound.js";

const ROW = 6; // pixels

export function show(page) {
  const frames = framesOf(page.data.tune), notes = held(frames), keys = range(frames), T = frames.length;
  const height = Math.max(90, ROW * (keys[1] - keys[0] + 1));
  let place;
  const picture = canvas(page, {
    height: height + 20,
    label: "",
    grab: (x) => ({ frame: Math.min(T, Math.max(1, place.frame(x) + 1)) }),
    key(name) {
      if (name === " ") return play(), {};
      const to = stepped(name, page.state.frame, 1, T);
      return to && { frame: to };
    },
  });
  const table = turntable(page.data, picture.element, () => draw());
  const play = () => (table.frame("tune") === undefined ? table.start("tune", notes, T, page.state.frame - 1) : table.stop());
  const player = playButton(page, () => `from frame ${page.state.frame}`, play);
  saveButton(page, page.data.name, () => notes);

  function draw() {
    const { pen, width } = picture.begin();
    place = places({ y: 0, width, height }, T, keys);
    drawOctaves(pen, page, place);
    drawNotes(pen, place, notes, () => bachs(page.dark));
    pen.fillStyle = page.ink;
    pen.fillRect(place.x(page.state.frame - 1), height, 2, 6);
    pen.textAlign = "center";
    pen.fillText(page.state.frame, Math.max(LEFT, place.x(page.state.frame - 1)), height + 13);
    drawCursor(pen, page, place, table.frame("tune"));
    player(table.frame("tune") !== undefined);
  }

  let first = page.state.frame;
  return ({ frame }) => {
    if (frame !== first && table.frame("tune") !== undefined) table.start("tune", notes, T, frame - 1);
    first = frame;
    draw();
    picture.describe(`Piano roll of ${page.data.name}, frame ${frame}. Arrows move, space plays.`);
    return `${T} frames, ${notes.length} notes, ${(T * page.data.seconds).toFixed(1)} seconds.`;
  };
}
