// The errata detective: a claim, a question, and the evidence once the reader asks for it. Cases that were looked at are
// kept in the state, so a new case never shows its answer.

import { SERIES } from "./chart.js";
import { make, select } from "./page.js";

const STYLE = `
.rtx-page .evidence td { padding: 2px 8px 2px 0; }
.rtx-page .evidence td:last-child { width: 60%; }
.rtx-page .evidence i { display: inline-block; height: 16px; margin-right: 6px; vertical-align: middle; background: ${SERIES[0]}; }`;

export function show(page) {
  const { cases } = page.data;
  select(page, "case", { options: cases.map(({ title }, i) => [i, `${i + 1}: ${title}`]) });
  const text = make("div");
  page.style(STYLE);
  page.picture(text);
  const reveal = () => page.set({ seen: [...page.state.seen, page.state.case] });
  const look = make("button", { textContent: "Show the evidence", onclick: reveal });

  /** The evidence: a row for each name, with a bar as long as its number. */
  function table({ bars, unit }) {
    const most = Math.max(...bars.map(([, value]) => Math.abs(value)), 1e-12);
    const bar = (value) => {
      const drawn = make("i");
      drawn.style.width = `${(75 * Math.abs(value)) / most}%`;
      return make("td", {}, drawn, String(Number(value.toPrecision(3))));
    };
    const rows = bars.map(([name, value]) => make("tr", {}, make("td", { textContent: name }), bar(value)));
    return make("table", { className: "evidence" }, make("caption", { textContent: unit }), ...rows);
  }

  return ({ case: chosen, seen }) => {
    const one = cases[chosen] ?? cases[0], open = seen.includes(chosen);
    const claim = make("p", {}, make("b", { textContent: `${one.source}: ` }), one.claim);
    text.replaceChildren(claim, make("p", { textContent: one.question }), open ? table(one) : look);
    return open ? one.verdict : `Case ${chosen + 1} of ${cases.length}. Guess first.`;
  };
}
