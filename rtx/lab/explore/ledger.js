// The ledger browser: a table of the paper's numbers and ours. A button for each number of ours says what is behind it.

import { make, select } from "./page.js";

const STYLE = `
.rtx-page .facts { white-space: nowrap; }
.rtx-page .facts th { border-bottom: 1px solid currentColor; }
.rtx-page td button { background: none; border: 1px solid transparent; padding: 1px 6px; border-radius: 3px;
  text-decoration: underline; text-underline-offset: 3px; }
.rtx-page td button[aria-pressed=true] { border-color: currentColor; }`;

function describe({ metric, validated }, row) {
  const paper = row.paper === "-" ? "The paper has no number" : `The paper has ${row.paper}`;
  if (!row.seeds) return `${row.model}: ${paper}; it has not been run here. To run it: ${row.command}`;
  const seeds = row.seeds.includes(",") ? `seeds ${row.seeds}, mean ± sd` : `seed ${row.seeds}`;
  return `${row.model}: ${paper}, ours is ${row.ours} (${metric}; validation ${row.validation} ${validated}, ` +
    `epoch ${row.epoch}, ${seeds}), variant ${row.variant}, budget ${row.budget}, ${row.parameters} parameters, on ${row.hardware}. ` +
    `To run it again: ${row.command}`;
}

/** How many models of a table have been run. */
function filled({ rows }) {
  const models = (some) => new Set(some.map(({ model }) => model)).size;
  return `${models(rows.filter(({ seeds }) => seeds))} of ${models(rows)}`;
}

export function show(page) {
  const options = Object.entries(page.data).map(([name, table]) => [name, `${table.title}: ${filled(table)} models`]);
  select(page, "table", { options });
  const title = make("p"), body = make("tbody"), names = ["model", "paper", "ours", "variant, scale", "budget"];
  const head = make("tr", {}, ...names.map((textContent) => make("th", { textContent, scope: "col" })));
  page.style(STYLE);
  page.show(title, make("table", { className: "facts" }, make("thead", {}, head), body));

  const line = ({ model, paper, ours, variant, budget, cell }) => {
    const ariaPressed = page.state.cell === cell, onclick = () => page.set({ cell });
    const button = make("button", { textContent: ours, ariaPressed, onclick });
    return make("tr", {}, ...[model, paper, button, variant, budget].map((content) => make("td", {}, content)));
  };
  return (state) => {
    const table = page.data[state.table], buttons = () => [...body.querySelectorAll("button")];
    title.textContent = `${table.source}: ${table.metric}; the ${table.best} is best.`;
    const focused = buttons().indexOf(document.activeElement);
    body.replaceChildren(...table.rows.map(line));
    buttons()[focused]?.focus(); // they were made anew
    const chosen = table.rows.find(({ cell }) => cell === state.cell);
    return chosen ? describe(table, chosen) : `${filled(table)} models have been run. Choose a number of ours.`;
  };
}
