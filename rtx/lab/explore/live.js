// An explorer that trains where a kernel listens: a form and buttons above a recording that grows, and a table below.
// Without a kernel the form and the buttons are hidden, and the recording plays.

import { SERIES } from "./chart.js";
import { make, numberInput, select, textInput, checkbox } from "./page.js";
import { show as recording } from "./recording.js";

const COLUMNS = { model: "model", settings: "settings", parameters: "parameters", updates: "updates", best: "best validation" };
const STYLE = `
.rtx-page .live { flex-basis: 100%; }
.rtx-page .runs { overflow-x: auto; margin-top: 8px; font-size: 14px; }
.rtx-page .runs table { border-collapse: collapse; color: inherit; }
.rtx-page .runs th, .rtx-page .runs td { text-align: left; padding: 2px 14px 2px 0; background: none; color: inherit; }
.rtx-page .runs td { font-variant-numeric: tabular-nums; }
.rtx-page .runs pre { color: inherit; background: none; }`;
const KINDS = { pick: select, whole: numberInput, number: numberInput, box: checkbox, text: textInput };

/** A function that fills an element: an item is built anew only if it has changed, so that none loses the focus. */
function filled(element, build) {
  const slots = [];
  return (items) => {
    items.forEach((item, i) => {
      const text = JSON.stringify(item);
      if (slots[i]?.text === text) return;
      const made = build(item, i);
      if (slots[i]) slots[i].made.replaceWith(made);
      else element.append(made);
      slots[i] = { text, made };
    });
    slots.splice(items.length).forEach(({ made }) => made.remove());
  };
}

/** A field of the form. What stands in the state by its name is set there, else in its dict of changes. */
function field(page, { name, kind, value, values }) {
  const own = name in page.state, box = make("span");
  const set = (chosen) => {
    const { changes } = page.state; // another task or model begins with its own values
    page.set(own ? { ...chosen, ...(changes && { changes: {} }) } : { changes: { ...changes, ...chosen } });
  };
  const control = (_, put, whole) => {
    box.append(whole);
    box.put = () => {
      const chosen = (own ? page.state : page.state.changes)[name] ?? value;
      put(values.length && !values.includes(chosen) ? value : chosen);
    };
  };
  KINDS[kind]({ set, control }, name, { options: values, step: kind === "whole" ? 1 : "any" });
  return box;
}

/** Two rows of the table for each run. What a reader has opened stays open. */
function runTable() {
  const head = make("tr", {}, ...["", ...Object.values(COLUMNS)].map((text) => make("th", { scope: "col", textContent: text })));
  const body = make("tbody"), element = make("div", { className: "runs" }, make("table", {}, make("thead", {}, head), body));
  const fill = filled(body, ({ cells, more }, i) => {
    if (more) {
      const details = make("details", {}, make("summary", { textContent: "command, code and log" }), make("pre", { textContent: more }));
      details.open = body.children[i]?.querySelector("details").open ?? false;
      return make("tr", {}, make("td", { colSpan: 6 }, details));
    }
    const mark = make("td", { textContent: "■" });
    mark.style.setProperty("color", SERIES[(i / 2) % SERIES.length], "important");
    return make("tr", {}, mark, ...cells.map((textContent) => make("td", { textContent })));
  });
  const update = (runs) => {
    element.hidden = !runs.length;
    fill(runs.flatMap(({ more, ...run }) => [{ cells: Object.keys(COLUMNS).map((name) => run[name]) }, { more }]));
  };
  return { element, update };
}

export function show(page) {
  const fields = make("div", { className: "row" }), status = make("span", { className: "status" });
  status.setAttribute("role", "status");
  const press = (name) => make("button", { type: "button", textContent: name, onclick: ({ target }) => page.ask(target.textContent.toLowerCase()) });
  const [train, pause, stop, clear] = ["Train", "Pause", "Stop", "Clear"].map(press);
  const block = make("div", { className: "live" }, make("style", { textContent: STYLE }), fields, make("div", { className: "row" }, train, pause, stop, clear), status);
  page.control(null, null, block);
  block.hidden = !page.kernel;
  const fill = filled(fields, (item) => field(page, item)), runs = runTable(), play = recording(page);
  page.picture(runs.element);
  return (state) => {
    const { form, table, status: said, state: doing } = page.data, busy = doing === "running" || doing === "paused";
    if (page.kernel) fill(form);
    for (const box of fields.children) box.put();
    if (status.textContent !== said) status.textContent = said;
    train.disabled = doing === "running";
    pause.disabled = stop.disabled = !busy;
    clear.disabled = busy || doing === "new";
    pause.textContent = doing === "paused" ? "Resume" : "Pause";
    runs.update(table);
    return play(state);
  };
}
