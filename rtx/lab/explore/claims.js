// The claims of the papers: a list with a filter by paper, by verdict and by word. A claim opens to the numbers behind it.

import { make, select, textInput } from "./page.js";

const STYLE = `
.rtx-page .claims { max-height: 420px; overflow-y: auto; border-top: 1px solid var(--rtx-faint); }
.rtx-page .claims details { border-bottom: 1px solid var(--rtx-faint); padding: 4px 2px; }
.rtx-page .claims summary { cursor: pointer; }
.rtx-page .claims b { display: inline-block; min-width: 3.6em; }
.rtx-page .claims b.open { font-weight: normal; }`;

const SUGGESTS = { for: "The runs suggest that it holds.", against: "The runs suggest that it fails.", "both ways": "The runs point both ways." };

function entry({ paper, source, text, task, verdict, suggests, sentence }) {
  const line = (...parts) => make("p", { textContent: parts.filter(Boolean).join(" ") });
  return make("details", {}, make("summary", {}, make("b", { className: verdict, textContent: verdict }), text),
    line(`${source.startsWith(paper) ? "" : `${paper}: `}${source}.`, verdict === "open" && SUGGESTS[suggests]),
    line(task && `${task}.`, `Ledger: ${sentence}.`));
}

export function show(page) {
  const { papers, verdicts, tasks } = page.data, claims = page.data.claims.map((one) => ({ ...one, task: tasks[one.task] }));
  select(page, "paper", { options: ["all", ...papers] });
  select(page, "verdict", { options: ["all", ...verdicts] });
  textInput(page, "word", { label: "with the word", maxLength: 40 });
  const list = make("div", { className: "claims", role: "region", ariaLabel: "claims", tabIndex: 0 });
  page.style(STYLE);
  page.show(list);
  let listed = "";
  return ({ paper, verdict, word }) => {
    const fits = (one) => (paper === "all" || one.paper === paper) && (verdict === "all" || one.verdict === verdict) &&
      `${one.text} ${one.task} ${one.sentence}`.toLowerCase().includes(word.trim().toLowerCase());
    const found = claims.filter(fits), count = (name) => found.filter((one) => one.verdict === name).length;
    const asked = JSON.stringify([paper, verdict, word]);
    if (asked !== listed) list.replaceChildren(...found.map(entry)); // else a claim that the reader opens would close
    listed = asked;
    return `${found.length} of ${claims.length} claims (${verdicts.map((name) => `${name}: ${count(name)}`).join(", ")}). ` +
      (found.length ? "Choose a claim to see the numbers behind it." : "No claim fits: choose another paper, verdict or word.");
  };
}
