// The ledger browser: a table of the paper's numbers and ours. A button for each number of ours says what is behind it.

import { make, select } from "./page.js";

const STYLE = `
.rtx-page .facts { white-space: nowrap; }
.rtx-page .facts th { border-bottom: 1px solid currentColor; }
.rtx-page td button { background: none; border: 1px solid transparent; padding: 1px 6px; border-radius: 3px;
  text-decoration: underline; text-underline-offset: 3px; }
.rtx-page .behind { white-space: normal; position: sticky; left: 0; max-width: 100cqw; }
.rtx-page td button[aria-pressed=true] { border-color: currentColor; }`;

/** A number of ours beside the paper's, in one sentence. */
function compare({ model, variant, paper, ours, seeds }) {
  const theirs = paper === "-" ? "the paper has no number" : `the paper has ${paper}`;
  return seeds ? `${model}, ${variant}: ${theirs}, ours is ${ours}.` : `${model}: ${theirs}; it has not been run here.`;
}

/** What is behind it. */
function describe({ metric, validated }, row) {
  if (!row.seeds) return `To run it: ${row.command}`;
  const seeds = row.seeds.includes(",") ? `Seeds ${row.seeds}, mean ± sd` : `Seed ${row.seeds}`;
  return `${seeds}; ${metric}; validation ${row.validation} ${validated}, epoch ${row.epoch}; budget ${row.budget}, ` +
    `${row.parameters} parameters, on ${row.hardware}. To run it again: ${row.command}`;
}

/** Each line by the names of its columns; `cell` tells the lines of a model apart. With seconds as budget, hardware matters. */
function named(rows, names) {
  const lines = {};
  return rows.map((values) => {
    const row = Object.fromEntries(names.map((name, place) => [name, values[place]]));
    if (row.variant.includes("seconds")) row.variant += `, ${row.hardware.split(",")[0]}`;
    lines[row.model] = (lines[row.model] ?? -1) + 1;
    return { ...row, cell: `${row.model} ${lines[row.model]}` };
  });
}

/** How many models of a table have been run. */
function filled({ rows }) {
  const models = (some) => new Set(some.map(({ model }) => model)).size;
  return `${models(rows.filter(({ seeds }) => seeds))} of ${models(rows)}`;
}

export function show(page) {
  const tables = {};
  for (const [name, table] of Object.entries(page.data.tables)) tables[name] = { ...table, rows: named(table.rows, page.data.names) };
  const options = Object.entries(tables).map(([name, table]) => [name, `${table.title}: ${filled(table)} models`]);
  select(page, "table", { options });
  const title = make("p"), body = make("tbody"), names = ["model", "paper", "ours", "variant, scale", "budget"];
  const head = make("tr", {}, ...names.map((textContent) => make("th", { textContent, scope: "col" })));
  page.style(STYLE);
  page.show(title, make("table", { className: "facts" }, make("thead", {}, head), body));

  /** A row, and below the chosen one what is behind it. */
  const line = (table, given) => {
    const { model, paper, ours, variant, budget, cell } = given;
    const ariaPressed = page.state.cell === cell, onclick = () => page.set({ cell: ariaPressed ? "" : cell });
    const button = make("button", { textContent: ours, ariaLabel: `${model}, ${variant}: ${ours}`, ariaPressed, onclick });
    const row = make("tr", {}, ...[model, paper, button, variant, budget].map((content) => make("td", {}, content)));
    const behind = make("div", { className: "behind", textContent: `${compare(given)} ${describe(table, given)}` });
    return ariaPressed ? [row, make("tr", {}, make("td", { colSpan: names.length }, behind))] : [row];
  };
  return (state) => {
    const table = tables[state.table], buttons = () => [...body.querySelectorAll("button")];
    title.textContent = `${table.source}: ${table.metric}; the ${table.best} is best.`;
    const focused = buttons().indexOf(document.activeElement);
    body.replaceChildren(...table.rows.flatMap((row) => line(table, row)));
    buttons()[focused]?.focus(); // they were made anew
    const chosen = table.rows.find(({ cell }) => cell === state.cell);
    return chosen ? compare(chosen) : `${filled(table)} models have been run. Choose a number of ours.`;
  };
}
