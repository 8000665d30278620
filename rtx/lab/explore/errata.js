// The errata detective: a claim, a question, and the evidence once the reader asks for it. Cases that were looked at are
// kept in the state, so a new case never shows its answer.

import { SERIES } from "./chart.js";
import { button, canvas, make, select } from "./page.js";

const BAR = 26, LABELS = 220, NARROW = 520; // pixels

export function show(page) {
  const { cases } = page.data;
  select(page, "case", { options: cases.map(({ title }, i) => [i, `${i + 1}: ${title}`]) });
  const go = (step) => page.set({ case: (page.state.case + step + cases.length) % cases.length });
  button(page, "Previous", () => go(-1));
  button(page, "Next", () => go(1));
  const text = make("div");
  page.picture(text);
  const look = make("button", { type: "button", textContent: "Show the evidence" });
  look.onclick = () => page.set({ seen: [...page.state.seen, page.state.case] });
  const picture = canvas(page, { height: 10, label: "the evidence as bars" });

  return ({ case: chosen, seen }) => {
    const { source, claim, question, bars, unit, verdict } = cases[chosen] ?? cases[0], open = seen.includes(chosen);
    text.replaceChildren(make("p", {}, make("b", { textContent: `${source}: ` }), claim), make("p", { textContent: question }));
    if (!open) text.append(look);
    picture.element.hidden = !open;
    picture.resize(BAR * bars.length + 30);
    if (!open) return `Case ${chosen + 1} of ${cases.length}. Guess first.`;
    const { pen, width } = picture.begin(), left = width < NARROW ? 130 : LABELS;
    const most = Math.max(...bars.map(([, value]) => Math.abs(value)), 1e-12);
    bars.forEach(([name, value], i) => {
      const y = i * BAR + BAR / 2;
      pen.fillStyle = SERIES[0];
      pen.fillRect(left, y - 9, (Math.abs(value) / most) * (width - left - 60), 18);
      pen.fillStyle = page.ink;
      pen.textAlign = "right";
      pen.fillText(name, left - 8, y, left - 10);
      pen.textAlign = "left";
      pen.fillText(String(Number(value.toPrecision(3))), left + 6 + (Math.abs(value) / most) * (width - left - 60), y);
    });
    pen.fillText(unit, left, BAR * bars.length + 14, width - left);
    return verdict;
  };
}
