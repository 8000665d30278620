// The ledger browser: a table of the paper's numbers and ours. A button for each cell says what stands behind it.

import { make, select } from "./page.js";

const STYLE = `
.rtx-page table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.rtx-page th, .rtx-page td { padding: 2px 14px 2px 0; text-align: left; font-weight: normal; white-space: nowrap; }
.rtx-page th { border-bottom: 1px solid currentColor; font-weight: bold; }
.rtx-page td button { font: inherit; color: inherit; background: none; border: 1px solid transparent; padding: 1px 6px;
  cursor: pointer; border-radius: 3px; text-decoration: underline; text-underline-offset: 3px; }
.rtx-page td button[aria-pressed=true] { border-color: currentColor; }
.rtx-page td.none button { opacity: 0.65; }`;

/** What a cell's button is called: the row, and which of its runs. */
const key = (row, place) => `${row.model} ${place}`;

function describe(table, row, cell) {
  const paper = row.paper === "-" ? "The paper has no number" : `The paper has ${row.paper}`;
  if (!cell) return `${row.model}: ${paper}; it has not been run here. To run it: ${row.command}`;
  const seeds = cell.seeds.includes(",") ? `seeds ${cell.seeds}, mean ± sd` : `seed ${cell.seeds}`;
  return `${row.model}: ${paper}, ours is ${cell.ours} (${table.metric}; validation ${cell.validation}, epoch ` +
    `${cell.epoch}, ${seeds}), variant ${cell.variant}, budget ${cell.budget}, ${cell.parameters} parameters, on ` +
    `${cell.hardware}. To run it again: ${cell.command}`;
}

export function show(page) {
  const names = Object.keys(page.data);
  const filled = (name) => page.data[name].rows.filter((row) => row.cells.length).length;
  const options = names.map((name) => [name, `${page.data[name].title}: ${filled(name)} of ${page.data[name].rows.length}`]);
  select(page, "table", { options });
  const title = make("p"), body = make("tbody");
  const head = make("tr", {}, ...["model", "paper", "ours", "variant, scale", "budget"].map((text) =>
    make("th", { textContent: text, scope: "col" })));
  page.picture(make("div", {}, make("style", { textContent: STYLE }), title,
    make("table", {}, make("thead", {}, head), body)));

  const buttons = () => [...body.querySelectorAll("button")];
  const button = (row, place, text, state) => {
    const made = make("button", { textContent: text, type: "button" });
    made.setAttribute("aria-pressed", state.cell === key(row, place));
    made.onclick = () => page.set({ cell: key(row, place) });
    return made;
  };
  const line = (row, place, cell, state) => {
    const texts = cell ? [cell.variant, cell.budget] : ["", ""];
    const ours = make("td", { className: cell ? "" : "none" }, button(row, place, cell ? cell.ours : "not run", state));
    const cells = [row.model, row.paper].map((textContent) => make("td", { textContent }));
    return make("tr", {}, ...cells, ours, ...texts.map((textContent) => make("td", { textContent })));
  };
  return (state) => {
    const table = page.data[state.table];
    title.textContent = `${table.source}: ${table.metric}; the ${table.best} is best.`;
    const lines = table.rows.flatMap((row) =>
      row.cells.length ? row.cells.map((cell, place) => [row, place, cell]) : [[row, 0, undefined]]);
    const focused = buttons().indexOf(document.activeElement);
    body.replaceChildren(...lines.map(([row, place, cell]) => line(row, place, cell, state)));
    buttons()[focused]?.focus(); // they were made anew
    const chosen = lines.find(([row, place]) => key(row, place) === state.cell);
    if (chosen) return describe(table, chosen[0], chosen[2]);
    return `${filled(state.table)} of ${table.rows.length} rows have been run. Choose a number of ours.`;
  };
}
