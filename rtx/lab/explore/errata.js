// The errata detective: a claim, a question, and the evidence once the reader asks for it. Cases that were looked at are
// kept in the state, so a new case never shows its answer.

import { short } from "./chart.js";
import { make, select } from "./page.js";

export function show(page) {
  const { cases } = page.data;
  select(page, "case", { options: cases.map(({ title }, i) => [i, `${i + 1}: ${title}`]) });
  const text = make("div");
  page.show(text);
  const reveal = () => page.set({ seen: [...page.state.seen, page.state.case] });
  const look = make("button", { textContent: "Show the evidence", onclick: reveal });
  const next = make("button", { textContent: "Next case", onclick: () => page.set({ case: (page.state.case + 1) % cases.length }) });

  /** The evidence: a row for each name, with a bar as long as its number. */
  function table({ bars, unit }) {
    const max = Math.max(...bars.map(([, value]) => Math.abs(value)));
    const rows = bars.map(([name, value]) => {
      const cells = [name, short(value), make("meter", { max, value: Math.abs(value), ariaLabel: name, style: "width: 30cqw" })];
      return make("tr", {}, ...cells.map((one) => make("td", {}, one)));
    });
    return make("table", { className: "facts" }, make("caption", { textContent: unit }), ...rows);
  }

  return ({ case: chosen, seen }) => {
    const one = cases[chosen], open = seen.includes(chosen);
    const claim = make("p", {}, make("b", { textContent: `${one.source}: ` }), one.claim);
    const hasFocus = [look, next].includes(document.activeElement);
    text.replaceChildren(claim, make("p", { textContent: one.question }), ...(open ? [table(one), next] : [look]));
    if (hasFocus) (open ? next : look).focus(); // what is replaced loses it
    return `Case ${chosen + 1} of ${cases.length}. ${open ? one.verdict : "Answer the question for yourself, then look."}`;
  };
}
