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

  /** The evidence: a row for each name; once it is open, with its number and a bar, logarithmic where numbers differ much. */
  function table({ bars, unit }, open) {
    const sizes = bars.map(([, value]) => Math.abs(value)).filter(Boolean), max = Math.max(...sizes), least = Math.min(...sizes) / 10;
    const wide = max > 300 * least, share = (size) => (wide ? Math.max(0, Math.log(size / least) / Math.log(max / least)) : size / max);
    const rows = bars.map(([name, value]) => {
      const bar = make("div", { style: `width: ${30 * share(Math.abs(value))}cqw; border-top: 10px solid #808080; margin: 5px 0` });
      return make("tr", {}, ...(open ? [name, short(value), bar] : [name]).map((one) => make("td", {}, one)));
    });
    const textContent = wide && open ? `${unit}; logarithmic bars` : unit, style = "text-align: left; white-space: nowrap";
    return make("table", { className: "facts" }, make("caption", { textContent, style }), ...rows);
  }

  return ({ case: chosen, seen }) => {
    const one = cases[chosen], open = seen.includes(chosen);
    const claim = make("p", {}, make("b", { textContent: `${one.source}: ` }), one.claim);
    const hasFocus = [look, next].includes(document.activeElement);
    text.replaceChildren(claim, make("p", { textContent: one.question }), table(one, open), open ? next : look);
    if (hasFocus) (open ? next : look).focus(); // what is replaced loses it
    return `Case ${chosen + 1} of ${cases.length}. ${open ? one.verdict : "Answer the question for yourself, then look."}`;
  };
}
