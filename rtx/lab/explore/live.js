// An explorer that trains where a kernel listens: a form and buttons above a recording that grows, and a table below.
// Without a kernel the form and the buttons are away, and the recording plays.

import { SERIES } from "./chart.js";
import { checkbox, make, numberInput, select, textInput } from "./page.js";
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

/** The form: a field is built anew only if it has changed, so that none loses the focus. */
function formRow(page, element) {
  const slots = [];
  const build = (box, { name, kind, value, values, also }) => {
    const own = name in page.state;
    let put;
    const within = {
      set: (chosen) => page.set(own ? { ...also, ...chosen } : { changes: { ...page.state.changes, ...chosen } }),
      control(_, shows, whole) {
        box.append(whole);
        put = shows;
      },
    };
    KINDS[kind](within, name, { options: values, step: kind === "whole" ? 1 : "any" });
    const chosen = () => (own ? page.state[name] || value : page.state.changes[name] ?? value);
    return () => put(chosen());
  };
  return (form) => {
    form.forEach((field, i) => {
      const text = JSON.stringify(field);
      slots[i] ??= { box: element.appendChild(make("span")) };
      if (slots[i].text !== text) {
        slots[i].box.replaceChildren();
        Object.assign(slots[i], { text, put: build(slots[i].box, field) });
      }
      slots[i].put();
    });
    slots.splice(form.length).forEach(({ box }) => box.remove());
  };
}

/** The table of runs: its rows stay, so that what a reader has opened in them stays open. */
function runTable() {
  const head = make("tr", {}, ...["", ...Object.values(COLUMNS)].map((text) => make("th", { scope: "col", textContent: text })));
  const body = make("tbody"), table = make("table", {}, make("thead", {}, head), body);
  const element = make("div", { className: "runs" }, table);
  const put = (place, text) => place.textContent !== text && (place.textContent = text);
  const row = (i) => {
    const mark = make("td", { textContent: "■" }), more = make("pre");
    mark.style.setProperty("color", SERIES[i % SERIES.length], "important");
    const cells = Object.keys(COLUMNS).map(() => make("td"));
    const detail = make("td", { colSpan: 6 }, make("details", {}, make("summary", { textContent: "command, code and log" }), more));
    body.append(make("tr", {}, mark, ...cells), make("tr", {}, detail));
    return { cells, more };
  };
  const rows = [];
  const update = (runs) => {
    element.hidden = !runs.length;
    for (let i = rows.length; i < runs.length; i++) rows.push(row(i));
    for (const { more } of rows.splice(runs.length)) {
      const second = more.closest("tr");
      second.previousSibling.remove();
      second.remove();
    }
    runs.forEach((run, i) => {
      Object.keys(COLUMNS).forEach((name, k) => put(rows[i].cells[k], run[name]));
      put(rows[i].more, run.more);
    });
  };
  return { element, update };
}

export function show(page) {
  const fields = make("div", { className: "row" }), status = make("span", { className: "status" });
  status.setAttribute("role", "status");
  const press = (name) => make("button", { type: "button", textContent: name, onclick: () => page.ask(page.data.state === "paused" && name === "Pause" ? "resume" : name.toLowerCase()) });
  const [train, pause, stop, clear] = ["Train", "Pause", "Stop", "Clear"].map(press);
  const block = make("div", { className: "live" }, make("style", { textContent: STYLE }), fields, make("div", { className: "row" }, train, pause, stop, clear), status);
  page.control(null, null, block);
  block.hidden = !page.kernel;
  const fill = formRow(page, fields), runs = runTable(), play = recording(page);
  page.picture(runs.element);
  return (state) => {
    const { form, table, status: said, state: doing } = page.data, busy = doing === "running" || doing === "paused";
    if (page.kernel) fill(form);
    if (status.textContent !== said) status.textContent = said;
    train.disabled = doing === "running";
    pause.disabled = stop.disabled = !busy;
    clear.disabled = busy || doing === "new";
    pause.textContent = doing === "paused" ? "Resume" : "Pause";
    runs.update(table);
    return play(state);
  };
}
