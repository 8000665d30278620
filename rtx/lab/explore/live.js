// An explorer that trains where a kernel listens: a form and buttons above a recording that grows, and a table below.
// Without a kernel the form and the buttons are hidden, and the recording plays.

import { SERIES } from "./chart.js";
import { checkbox, make, numberInput, put, select, textInput } from "./page.js";
import { show as recording } from "./recording.js";

const STYLE = `
.rtx-page .live { flex-basis: 100%; }
.rtx-page .runs { overflow-x: auto; margin-top: 8px; font-size: 14px; }
.rtx-page .runs pre { color: inherit; background: none; }`;
const KINDS = { number: numberInput, boolean: checkbox, string: textInput };

export function show(page) {
  const fields = make("div", { className: "row" }), status = make("span", { className: "status", role: "status" });
  const act = ({ target }) => page.ask(target.textContent.toLowerCase());
  const press = (textContent) => make("button", { textContent, onclick: act });
  const [train, pause, stop, clear] = ["Train", "Pause", "Stop", "Clear"].map(press);
  const buttons = make("div", { className: "row" }, train, pause, stop, clear);
  const block = make("div", { className: "live" }, fields, buttons, status);
  page.style(STYLE);
  page.control(null, null, block);
  block.hidden = !page.kernel;
  const play = recording(page), table = make("table", { className: "facts" }), more = make("pre");
  const details = make("details", {}, make("summary", { textContent: "command and log of this run" }), more);
  const runs = make("div", { className: "runs" }, table, details);
  page.show(runs);

  let built = "";
  function build(form) {
    built = JSON.stringify(form);
    const label = document.activeElement?.getAttribute("aria-label"); // a new field takes the focus of the old one
    fields.replaceChildren();
    for (const [name, given] of Object.entries(form)) {
      const control = (_, put, whole) => fields.append(Object.assign(whole, { put: () => put(page.state[name] ?? given) }));
      const kind = Array.isArray(given) ? select : KINDS[typeof given];
      kind({ set: page.set, control }, name, { options: given });
    }
    fields.querySelector(`[aria-label="${label}"]`)?.focus();
  }

  function list(rows, seen) {
    runs.hidden = !rows.length;
    if (!rows.length) return;
    const { more: text } = rows.at(seen), names = Object.keys(rows[0]).filter((name) => name !== "more");
    put(more, text);
    const head = make("tr", {}, ...["", ...names].map((textContent) => make("th", { scope: "col", textContent })));
    const lines = rows.map((row, i) => {
      const square = make("td", { textContent: "■", style: `color: ${SERIES[i % SERIES.length]} !important` });
      return make("tr", {}, square, ...names.map((name) => make("td", { textContent: row[name] })));
    });
    table.replaceChildren(head, ...lines);
  }

  return (state) => {
    const { controls, form, table: rows, status: said, state: doing } = page.data;
    const sentence = play(state), busy = doing === "running" || doing === "paused";
    if (page.kernel && JSON.stringify(form) !== built) build(form);
    for (const box of fields.children) box.put();
    put(status, said);
    train.disabled = doing === "running";
    pause.disabled = stop.disabled = !busy;
    clear.disabled = busy || doing === "new";
    pause.textContent = doing === "paused" ? "Resume" : "Pause";
    list(rows, controls.run?.values.indexOf(state.run));
    return sentence;
  };
}
