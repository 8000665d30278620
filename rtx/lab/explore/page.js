// The frame of every explorer: title, sentence, controls, pictures, presets, reset, a link to copy, light and dark.
//
// An explorer's file exports `show(page)`. It makes its controls and canvases with `page` and returns a function from
// the state to one sentence on what is seen now. The frame calls that function whenever the state, the data, the width
// or the theme changes. An explorer keeps everything that a reader can change in the state, by `page.set`, so that reset,
// presets and links work without a line of its own.
//
//   page.data, page.weights   what Python gave, and the bytes of a tensor file as a DataView (see tensor.js)
//   page.state, page.set({name})   the state by name: numbers, texts, true or false, or lists; and changing it, which draws
//   page.kernel, page.ask(what)    whether a kernel listens, and asking it by its trait `wish` (see live.py)
//   page.dark, page.ink, page.faint    the theme, the colour of text, and of lines that stay in the background
//   page.note(text), page.draw()   a second line, for what is under the pointer; draws again, for what was computed meanwhile
//   page.longest    pixels of the longest sentence in one line: room is kept for it, so that the picture stays where it is
//   page.show(...elements)     adds them to the pictures; a canvas is there already
//   page.style(text)    rules of CSS for this explorer, each with `.rtx-page` in front

const STYLE = `
.rtx-page { --rtx-ink: #222; --rtx-faint: #c8c8c8; --rtx-mark: #0063a6; --rtx-press: #00000010;
  font: 15px/1.45 system-ui, sans-serif; max-width: 900px; color: var(--rtx-ink); container-type: inline-size; }
.rtx-page.dark { --rtx-ink: #e8e8e8; --rtx-faint: #555; --rtx-mark: #7cc4ff; --rtx-press: #ffffff18; }
.rtx-page h3 { font: 600 17px/1.3 system-ui, sans-serif; margin: 4px 0 2px; color: inherit; }
.rtx-page p { margin: 4px 0; color: inherit; overflow-wrap: anywhere; }
.rtx-page .sentence { min-height: 2.9em; }
.rtx-page .row { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; margin: 6px 0; }
.rtx-page label { display: inline-flex; align-items: center; gap: 6px; max-width: 100%; }
.rtx-page [hidden] { display: none; }
.rtx-page select, .rtx-page input, .rtx-page button { font: inherit; }
.rtx-page select { min-width: 0; }
.rtx-page input[type=number] { width: 6.5em; }
.rtx-page input[type=text] { width: 40em; max-width: 100%; }
.rtx-page input[type=range] { accent-color: var(--rtx-mark); min-width: 90px; }
.rtx-page button { color: inherit; background: var(--rtx-press); border: 1px solid var(--rtx-faint); border-radius: 6px;
  padding: 3px 10px; min-height: 28px; cursor: pointer; }
.rtx-page button:hover, .rtx-page button[aria-pressed=true] { border-color: var(--rtx-mark); color: var(--rtx-mark); }
.rtx-page button:disabled { opacity: 0.55; cursor: default; border-color: var(--rtx-faint); color: inherit; }
.rtx-page :focus-visible { outline: 2px solid var(--rtx-mark); outline-offset: 2px; }
.rtx-page .value { min-width: 2.5em; font-variant-numeric: tabular-nums; }
.rtx-page .pictures { overflow-x: auto; padding: 3px; margin: -3px; }
.rtx-page canvas { display: block; width: 100%; }
.rtx-page canvas.held { cursor: pointer; touch-action: pan-y; }
.rtx-page .numbers { width: 100%; table-layout: fixed; border-collapse: collapse; font-size: 13px; margin: 4px 0; }
.rtx-page .numbers :is(th, td) { font-weight: normal; text-align: center; padding: 0; height: 22px;
  overflow: hidden; white-space: nowrap; }
.rtx-page .numbers th:first-child { width: 92px; text-align: left; }
.rtx-page .facts { border-collapse: collapse; color: inherit; font-variant-numeric: tabular-nums; }
.rtx-page .facts :is(th, td) { text-align: left; padding: 2px 14px 2px 0; background: none; color: inherit; }
.rtx-page .note, .rtx-page .caption { font-size: 14px; }
.rtx-page .note { min-height: 1.45em; }
.rtx-page .said { min-width: 0; overflow-wrap: anywhere; }
@media (forced-colors: active) { /* colours that are data stay */
  .rtx-page :is(.square, .legend span, .tokens span, .letters span, .numbers td) { forced-color-adjust: none; }
}`;

/** A share from 0 to 1 in percent; a small one with a digit more. */
export const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

/** A number with some decimals, and without the sign of "-0.00". */
export const decimals = (value, count) => Number(value.toFixed(count)).toFixed(count);

/** A token of a text, with a sign for what is not seen in print. */
export const printed = (token) => ({ " ": "␣", "\n": "⏎", "": "·", "<unk>": "?" })[token] ?? token;

/** Put a text into an element; nothing is read aloud again if it is there already. */
export const put = (element, text) => element.textContent === text || (element.textContent = text);

/** An element with properties and children. */
export const make = (kind, facts = {}, ...children) => {
  const element = Object.assign(document.createElement(kind), facts);
  element.append(...children);
  return element;
};

// Controls: the browser's own, so that they are moved by keyboard as everywhere, each with a label. They set
// `state[name]` and follow it, and return their input, whose `max` or `disabled` may be set later.

/** Add an input in its label, which is read aloud by this name and not by all its options. `put` shows a value in it. */
function addInput(page, name, label, input, put, parts = [label, input]) {
  input.ariaLabel = label;
  page.control(name, put, make("label", {}, ...parts));
  return input;
}

/**
 * A slider of numbers; `text` turns its value into what is shown beside it. With `seconds`, a button plays it: the
 * slider goes from where it is to its end, and would take that long for its whole length.
 */
export function slider(page, name, { label = name, min = 0, max, step = 1, text = String, seconds = 0 }) {
  const input = make("input", { type: "range", min, max, step }), shown = make("span", { className: "value" });
  const put = (value) => {
    input.value = value;
    input.ariaValueText = shown.textContent = text(Number(input.value));
  };
  input.oninput = () => page.set({ [name]: Number(input.value) });
  const whole = make("label", {}, label, input, shown), play = seconds && playButton(page, name, input, label, seconds);
  input.ariaLabel = label;
  page.control(name, put, play ? make("span", { className: "row" }, play, whole) : whole);
  return input;
}

function playButton(page, name, input, label, seconds) {
  const button = make("button"), isAtEnd = () => Number(input.value) >= Number(input.max);
  let timer = 0;
  function play(on) {
    clearInterval(timer);
    timer = on && setInterval(next, (1000 * seconds * input.step) / (input.max - input.min));
    Object.assign(button, { textContent: on ? "❚❚" : "▶", ariaLabel: `${on ? "pause" : "play"} ${label}` });
    page.announce(!on); // read aloud, ten sentences in a second would queue
  }
  function next() {
    if (isAtEnd() || !button.isConnected) play(false);
    else page.set({ [name]: Number(input.value) + Number(input.step) });
  }
  button.onclick = () => {
    if (!timer && isAtEnd()) page.set({ [name]: Number(input.min) });
    play(!timer);
  };
  play(false);
  return button;
}

/** A choice among `options`, each a value or a pair of value and label; a single one is not shown. */
export function select(page, name, { label = name, options }) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, String(option)]));
  const input = make("select", {}, ...pairs.map(([, text], i) => make("option", { value: i, textContent: text })));
  input.onchange = () => page.set({ [name]: pairs[input.value][0] });
  addInput(page, name, label, input, (value) => (input.value = pairs.findIndex(([one]) => one === value)));
  input.parentElement.hidden = pairs.length < 2;
  return input;
}

/** A line of text to type. */
export function textInput(page, name, { label = name, maxLength = 200 }) {
  const input = make("input", { type: "text", maxLength, spellcheck: false, autocomplete: "off" });
  input.oninput = () => page.set({ [name]: input.value });
  return addInput(page, name, label, input, (value) => {
    const line = value.replaceAll("\n", " "); // it would leave out a line's end and join two words
    if (line !== input.value) input.value = line; // else the cursor would jump to the end
  });
}

/** A field for a number. */
export function numberInput(page, name, { label = name }) {
  const input = make("input", { type: "number", step: "any" });
  let shown; // a number that is there already is not put again: the reader may be typing another one
  input.onchange = () => page.set({ [name]: Number(input.value) });
  return addInput(page, name, label, input, (value) => value === shown || (input.value = shown = value));
}

/** A box to tick. */
export function checkbox(page, name, { label = name }) {
  const input = make("input", { type: "checkbox" });
  input.onchange = () => page.set({ [name]: input.checked });
  return addInput(page, name, label, input, (value) => (input.checked = value), [input, label]);
}

/** A button that does `act`, beside the controls. */
export function button(page, text, act) {
  const element = make("button", { textContent: text, onclick: act });
  page.control(null, null, element);
  return element;
}

/**
 * A canvas as wide as the page. `label` says what it shows and which keys it takes, `point(x, y)` what is at a place under the
 * pointer, if anything, and `hint` how the picture is used.
 *
 * A reader changes the state in the picture itself: `grab(x, y, first, event)` is called when the pointer is pressed and
 * while it is dragged, `key(name, event)` when a key is pressed while the picture has the focus. Both return what to set,
 * or nothing. `told()` says where the keys have moved to.
 *
 * In the update, `begin(height, least)` clears it and returns { pen, width }, in CSS pixels. A page narrower than `least`
 * scrolls it.
 */
export function canvas(page, { label, hint = "", point = () => "", grab, key, told = () => "" }) {
  const element = make("canvas", { role: key ? "application" : "img", ariaLabel: label, className: grab ? "held" : "" });
  let under = null, keyed = false; // where the pointer is; whether a key moved last
  const byKey = () => keyed && document.activeElement === element && told();
  const tell = () => page.note((under ? point(...under) : byKey()) || hint);
  const change = (values) => values && page.set(values);
  page.show(element);
  page.drawn(() => (under || hint) && tell());
  const moved = (first) => (event) => {
    under = [event.offsetX, event.offsetY];
    if (first && !event.button) element.setPointerCapture(event.pointerId);
    if (grab && element.hasPointerCapture(event.pointerId)) change(grab(...under, first, event));
    tell();
  };
  element.onpointerdown = moved(true);
  element.onpointermove = moved(false);
  element.onpointerleave = () => ((under = null), tell());
  element.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const values = key?.(event.key, event);
    if (values) event.preventDefault(), ([under, keyed] = [null, true]), change(values);
  };
  if (key) element.tabIndex = 0;
  return {
    element,
    begin(height, least = 0) {
      Object.assign(element.style, { height: `${height}px`, minWidth: `${least}px` });
      const ratio = window.devicePixelRatio || 1, width = element.clientWidth || 720, pen = element.getContext("2d");
      Object.assign(element, { width: width * ratio, height: height * ratio });
      pen.scale(ratio, ratio);
      Object.assign(pen, { font: "13px system-ui, sans-serif", textBaseline: "middle", fillStyle: page.ink, strokeStyle: page.ink });
      return { pen, width };
    },
  };
}

/** A table of numbers: `head` above its columns, rows [name, numbers], and `cell(number, row)`, an element's properties. */
export function table(head, rows, cell) {
  const top = head.length ? [make("tr", {}, ...["", ...head].map((text) => make("th", { textContent: text })))] : [];
  const lines = rows.map(([name, numbers], i) =>
    make("tr", {}, make("th", { textContent: name }), ...Array.from(numbers, (number) => make("td", cell(number, i)))));
  const columns = rows[0][1].length, style = `min-width: ${92 + 26 * columns}px; max-width: ${92 + 100 * columns}px`;
  return make("table", { className: "numbers", style }, ...top, ...lines);
}

/**
 * What an arrow key, Home, End or Page Up and Down changes in a picture: left and right `across`, up and down `along`. Each is
 * given as [name, value, min, max]. Without `along`, the rows are a list, and down is its next one.
 */
export function arrows(key, across, along) {
  const list = { ArrowDown: "ArrowRight", ArrowUp: "ArrowLeft", PageDown: "PageUp", PageUp: "PageDown" };
  const turned = along ? key : (list[key] ?? key);
  const [name, value, min, max] = turned === "ArrowUp" || turned === "ArrowDown" ? along : across;
  const ends = { Home: -Infinity, End: Infinity };
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, ...ends };
  return turned in steps ? { [name]: Math.min(max, Math.max(min, value + steps[turned])) } : undefined;
}

/** Whether the page around an element is dark: its text is light then. */
function isDark(element) {
  const [red, green, blue] = getComputedStyle(element).color.match(/\d+/g) ?? [0, 0, 0]; // none before it is in the page
  return Number(red) + Number(green) + Number(blue) > 384;
}

/** JupyterLab takes the keys of what has the focus for commands, an arrow or a letter, unless that itself says no. */
const keepKeys = ({ target }) => (target.dataset.lmSuppressShortcuts = "true");

// The state in an address: `#position=3&text=to%20be`. Texts stand as they are, all else as JSON.

/** What differs from the start, as the part of an address behind "#". */
function written(state, start) {
  const changed = Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(start[name]));
  return new URLSearchParams(changed.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)])).toString();
}

/** The state that an address holds. */
function stateOf(hash, start) {
  const value = ([name, text]) => [name, typeof start[name] === "string" ? text : JSON.parse(text)];
  return Object.fromEntries([...new URLSearchParams(hash.slice(1))].filter(([name]) => name in start).map(value));
}

/** A value in Python, for a notebook, whose page has no address to send to others. */
const asPython = (value) => JSON.stringify(value).replace(/^true$/, "True").replace(/^false$/, "False");

/** The row below the pictures: presets, reset, and a link to what is seen. */
function footer(page, model, address, said) {
  const add = (text, act) => make("button", { textContent: text, onclick: act });
  const presets = Object.entries(model.get("presets")).map(([text, values]) => add(text, () => page.set(values)));
  const link = () => new URL(`#${written(page.state, page.opened)}`, address).href;
  const code = () => `.set(${Object.entries(page.state).map(([name, value]) => `${name}=${asPython(value)}`).join(", ")})`;
  const copy = add(address ? "Copy link" : "Copy as Python", async () => {
    const text = address ? link() : code();
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = "Copied.";
    } catch {
      said.textContent = text; // the browser does not allow it: to be copied by hand
    }
  });
  return make("div", { className: "row foot" }, ...presets, add("Reset", () => page.set(page.start)), copy, said);
}

/**
 * Show an explorer in `el`, as one view of `model`; returns what takes it off again.
 *
 * `address` is that of the page which shows this explorer alone; where that is this very page (`own`), the state is kept
 * in the address. `kernel` says whether Python listens to the model.
 */
export function mount(show, model, el, { address = "", own = false, kernel = false } = {}) {
  const controls = make("div", { className: "row controls" }), pictures = make("div", { className: "pictures" });
  const sentence = make("p", { className: "sentence", ariaLive: "polite" }), note = make("p", { className: "note", role: "status" });
  const said = make("span", { className: "said", role: "status" }), title = model.get("title");
  const box = make("div", { className: "rtx-page", role: "group", ariaLabel: title }, make("style", { textContent: STYLE }));
  box.addEventListener("focusin", keepKeys);
  box.onblur = () => box.removeAttribute("tabindex"); // a click beside the controls is the notebook's

  const puts = {}, drawns = [], ends = [];
  let update = () => "", read = {}, settling = 0, tallest = 0; // tallest: note so far, so that what is below stays where it is
  const page = {
    kernel,
    longest: 0,
    start: model.get("start"),
    opened: model.get("state"), // what an address without a state shows
    weights: model.get("weights")?.byteLength ? model.get("weights") : null,
    get data() {
      const text = model.get("data");
      if (text !== read.text) read = { text, data: JSON.parse(text) };
      return read.data;
    },
    get state() { return model.get("state"); },
    note(text) {
      if (note.textContent === text) return; // nothing is read aloud again
      note.textContent = text;
      note.style.minHeight = `${(tallest = Math.max(tallest, note.offsetHeight))}px`;
    },
    announce: (on) => ((sentence.ariaLive = on ? "polite" : "off"), on && sentence.replaceChildren(sentence.textContent)),
    style: (text) => box.append(make("style", { textContent: text })),
    draw: () => redraw(),
    show: (...elements) => pictures.append(...elements),
    drawn: (tell) => drawns.push(tell), // called after each update
    ended: (act) => ends.push(act), // called when the explorer is taken off
    set(values) {
      model.set("state", { ...model.get("state"), ...values });
      model.save_changes();
    },
    ask(what) {
      model.set("wish", [what, (model.get("wish")[1] ?? 0) + 1]); // a number, since the same may be asked again
      model.save_changes();
    },
    control(name, put, element) {
      if (name) puts[name] = put;
      controls.append(element);
    },
  };
  const tip = model.get("caption"), caption = make("p", { className: "caption", textContent: `Try: ${tip}${/[.?]$/.test(tip) ? "" : "."}` });
  box.append(make("h3", { textContent: title }), sentence, controls, pictures, note, footer(page, model, address, said), caption);
  el.append(box);

  const redraw = () => {
    const begun = performance.now(), focused = document.activeElement;
    page.dark = isDark(el);
    box.classList.toggle("dark", page.dark);
    [page.ink, page.faint] = ["--rtx-ink", "--rtx-faint"].map((name) => getComputedStyle(box).getPropertyValue(name));
    // before the update: afterwards, the browser would have to lay out the page once more to know its width
    if (page.longest) sentence.style.minHeight = `${Math.ceil(page.longest / sentence.clientWidth)}lh`;
    const state = page.state, text = update(state);
    for (const [name, put] of Object.entries(puts)) put(state[name]);
    if (sentence.textContent !== text) sentence.textContent = text, (said.textContent = "");
    if (focused?.disabled && box.contains(focused)) (box.tabIndex = -1), box.focus(); // it was pressed; another would act at the next Enter
    drawns.forEach((tell) => tell()); // what is under the pointer may be another now
    clearTimeout(settling);
    settling = setTimeout(settle, 300);
    box.dispatchEvent(new CustomEvent("rtx-drawn", { bubbles: true, detail: performance.now() - begun }));
  };
  /** A little later, because WebKit allows 100 changes of an address in 10 seconds, and a width that is asked for costs a layout. */
  function settle() {
    if (own) history.replaceState(null, "", `#${written(page.state, page.opened)}`);
    const isWide = pictures.scrollWidth > pictures.clientWidth; // so that it is scrolled by keyboard, too
    Object.assign(pictures, isWide ? { tabIndex: 0, role: "group", ariaLabel: "pictures, scroll sideways" } : { role: null, ariaLabel: null });
    if (!isWide) pictures.removeAttribute("tabindex");
  }
  update = show(page);
  const events = ["change:state", "change:data"], resized = new ResizeObserver(redraw);
  for (const name of events) model.on(name, redraw);
  /** Show the state that the address holds, also if it is changed in an open page; returns whether it holds one. */
  function follow() {
    const names = [...new URLSearchParams(location.hash.slice(1)).keys()];
    if (names.some((name) => !(name in page.start))) return false; // a place in the page, such as #main
    try {
      page.set({ ...page.opened, ...stateOf(location.hash, page.start) });
    } catch {
      page.set(page.start); // somebody has typed an address that cannot be read or shown
    }
    return true;
  }
  if (own) addEventListener("hashchange", follow);
  if (!own || !follow()) redraw();
  resized.observe(pictures);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const themed = new MutationObserver(() => setTimeout(redraw, 100)); // once its colours are there
  scheme.addEventListener("change", redraw);
  for (const one of [document.documentElement, document.body])
    themed.observe(one, { attributeFilter: ["class", "data-theme", "data-jp-theme-light"] });
  return () => {
    for (const name of events) model.off(name, redraw);
    scheme.removeEventListener("change", redraw);
    removeEventListener("hashchange", follow);
    clearTimeout(settling);
    ends.forEach((act) => act());
    for (const one of [resized, themed]) one.disconnect();
  };
}

/** A model without a kernel, for a page that stands alone; bytes come as base64 text. */
export function fixed(traits) {
  const listeners = new Set();
  const weights = traits.weights && new DataView(Uint8Array.from(atob(traits.weights), (letter) => letter.charCodeAt(0)).buffer);
  const values = { ...traits, weights };
  return {
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      listeners.forEach((listen) => listen());
    },
    on: (_, listen) => listeners.add(listen),
    off: (_, listen) => listeners.delete(listen),
    save_changes() {},
  };
}
