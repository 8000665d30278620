// The frame of the showpieces: controls, canvases, colours, a sentence that is read aloud, light and dark.
// A showpiece exports `show(page)`, makes its controls and canvases with `page`, and returns a function from the
// state to a sentence. That is called whenever the state, the width or the theme changes.

const STYLE = `
.rtx-page { font: 14px/1.4 sans-serif; max-width: 900px; color: var(--rtx-ink); }
.rtx-page .controls { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; margin: 4px 0 8px; }
.rtx-page label { display: inline-flex; align-items: center; gap: 6px; max-width: 100%; }
.rtx-page [hidden] { display: none; }
.rtx-page select, .rtx-page input { font: inherit; }
.rtx-page select { min-width: 0; }
.rtx-page input[type=text] { width: 40em; max-width: 100%; }
.rtx-page .value { min-width: 2.5em; font-variant-numeric: tabular-nums; }
.rtx-page .pictures { overflow-x: auto; }
.rtx-page canvas { display: block; width: 100%; }
.rtx-page p { margin: 6px 0 0; }
.rtx-page p, .rtx-page .value { overflow-wrap: anywhere; }
.rtx-page .point { min-height: 1.4em; font-size: 13px; }
.rtx-page .caption { font-style: italic; }`;

// Controls: the browser's own, so that they are moved by keyboard as everywhere, each with a label. They set
// `state[name]` and follow it, and return their input, whose `max` or `disabled` may be set later.

const make = (kind, facts = {}, ...children) => {
  const element = Object.assign(document.createElement(kind), facts);
  element.append(...children);
  return element;
};

/** A label around its input, which is read aloud by this name and not by all its options. */
function labelled(input, name, parts) {
  input.setAttribute("aria-label", name);
  return make("label", {}, ...parts);
}

/** A slider of numbers; `text` turns its value into what is shown beside it. */
export function slider(page, name, { label = name, min = 0, max, step = 1, text = String }) {
  const input = make("input", { type: "range", min, max, step });
  const shown = make("span", { className: "value" });
  const put = (value) => {
    input.value = value;
    shown.textContent = text(Number(input.value));
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  input.oninput = () => page.set({ [name]: Number(input.value) });
  page.control(name, put, labelled(input, label, [label, input, shown]));
  return input;
}

/** A choice among `options`, each a value or a pair of value and label. */
export function select(page, name, { label = name, options }) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, String(option)]));
  const input = make("select", {}, ...pairs.map(([, text], i) => make("option", { value: i, textContent: text })));
  input.onchange = () => page.set({ [name]: pairs[input.value][0] });
  const put = (value) => (input.value = pairs.findIndex(([one]) => one === value));
  page.control(name, put, labelled(input, label, [label, input]));
  return input;
}

/** A line of text to type. */
export function textInput(page, name, { label = name, maxLength = 200 }) {
  const input = make("input", { type: "text", maxLength, spellcheck: false });
  input.oninput = () => page.set({ [name]: input.value });
  const put = (value) => {
    const line = value.replaceAll("\n", " "); // it would leave out a line's end and join two words
    if (line !== input.value) input.value = line; // else the cursor would jump to the end
  };
  page.control(name, put, labelled(input, label, [label, input]));
  return input;
}

/** A box to tick. */
export function checkbox(page, name, { label = name }) {
  const input = make("input", { type: "checkbox" });
  input.onchange = () => page.set({ [name]: input.checked });
  page.control(name, (value) => (input.checked = value), labelled(input, label, [input, label]));
  return input;
}

/**
 * A canvas as wide as the page and `height` pixels high; a page narrower than `least` scrolls it. `label` says what it
 * shows, `point(x, y)` what is at a place under the mouse, if anything. In the update, `begin()` clears it and returns
 * { pen, width, height }, in CSS pixels; `resize(height, least)` gives it other sizes first.
 */
export function canvas(page, { height, least = 0, label, point = () => "" }) {
  const element = make("canvas");
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label);
  const resize = (high, narrowest = least) => {
    [height, least] = [high, narrowest];
    Object.assign(element.style, { height: `${height}px`, minWidth: `${least}px` });
  };
  resize(height);
  let under = null; // where the mouse is
  const tell = () => page.point((under && point(...under)) || "");
  page.picture(element, () => under && tell());
  element.onpointermove = ({ offsetX, offsetY }) => {
    under = [offsetX, offsetY];
    tell();
  };
  element.onpointerleave = () => {
    under = null;
    tell();
  };
  return {
    element,
    resize,
    describe: (text) => element.setAttribute("aria-label", text),
    begin() {
      const ratio = window.devicePixelRatio || 1, width = element.clientWidth || 720;
      element.width = width * ratio;
      element.height = height * ratio;
      const pen = element.getContext("2d");
      pen.scale(ratio, ratio);
      pen.font = "12px sans-serif";
      pen.fillStyle = pen.strokeStyle = page.ink;
      pen.textBaseline = "middle";
      return { pen, width, height };
    },
  };
}

/** Which places have a number, where there is room for one every so many `pixels`, `step` pixels lie between places. */
export const apart = (step, pixels = 24) => [1, 2, 5, 10, 20, 50, 100, 200, 500].find((one) => one * step >= pixels) ?? 1000;

/** A heat map in the box { x, y, width, height }: `colour(row, column)` for each cell, the first row on top. */
export function heatMap(pen, { x, y, width, height }, rows, columns, colour) {
  const across = width / columns, down = height / rows;
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      pen.fillStyle = colour(row, column);
      const left = Math.floor(x + column * across), top = Math.floor(y + row * down);
      pen.fillRect(left, top, Math.ceil(x + (column + 1) * across) - left, Math.ceil(y + (row + 1) * down) - top);
    }
}

/** A heat map as an image of a pixel a cell, to be drawn at any size: `colour` gives [red, green, blue], or nothing. */
export function bitmap(rows, columns, colour) {
  const image = make("canvas", { width: columns, height: rows });
  const pen = image.getContext("2d"), pixels = pen.createImageData(columns, rows);
  for (let cell = 0; cell < rows * columns; cell++) {
    const found = colour(Math.floor(cell / columns), cell % columns);
    if (found) pixels.data.set([...found, 255], 4 * cell);
  }
  pen.putImageData(pixels, 0, 0);
  return image;
}

// Colours: of numbers from 0 to 1, or -1 to 1, as [red, green, blue]. Fit for readers who confuse red and green.

const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129],
  [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const BLUES = {
  light: [[255, 255, 255], [158, 202, 225], [8, 81, 156]],
  dark: [[24, 24, 24], [33, 83, 133], [130, 200, 255]],
};
const DIVERGING = {
  light: [[5, 80, 160], [120, 175, 215], [247, 247, 247], [240, 175, 110], [175, 80, 0]],
  dark: [[110, 190, 255], [45, 95, 150], [38, 38, 38], [150, 90, 30], [255, 175, 80]],
};
const between = (colours, share) => {
  const place = Math.min(1, Math.max(0, share)) * (colours.length - 1);
  const i = Math.min(colours.length - 2, Math.floor(place));
  return colours[i].map((from, k) => Math.round(from + (place - i) * (colours[i + 1][k] - from)));
};
export const css = (colour) => `rgb(${colour.join(" ")})`;
/** From 0, dark violet, to 1, yellow. */
export const viridis = (share) => between(VIRIDIS, share);
/** From 0, the paper's colour, to 1, strong blue: for the background of words. */
export const blues = (share, dark) => between(dark ? BLUES.dark : BLUES.light, share);
/** From -1, blue, over 0, the paper's colour, to 1, orange. */
export const diverging = (value, dark) => between(dark ? DIVERGING.dark : DIVERGING.light, (value + 1) / 2);

/** How light a colour is, from 0 to 1: the relative luminance of WCAG 2.2. */
function luminance(colour) {
  const [red, green, blue] = colour.map((part) => (part > 10 ? ((part / 255 + 0.055) / 1.055) ** 2.4 : part / 255 / 12.92));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
/** Black or white, whichever is read better on a colour: a contrast of 4.5 at least. */
export const inkOn = (colour) => (luminance(colour) > 0.179 ? "#000" : "#fff");

/** An array that Python's `packed` wrote: its numbers in one row, and its shape. */
export function unpack({ shape, low, high, steps }) {
  const bytes = Uint8Array.from(atob(steps), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer), size = (high - low) / 65535;
  const values = Float32Array.from({ length: bytes.length / 2 }, (_, i) => low + view.getUint16(2 * i, true) * size);
  return { shape, values };
}

/** Whether the page behind an element is dark, whatever made it so. */
function isDark(element) {
  for (let one = element; one; one = one.parentElement) {
    const [red, green, blue, opacity = 1] = (getComputedStyle(one).backgroundColor.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    if (opacity > 0) return red + green + blue < 384;
  }
  return false; // no background: the browser's own, white
}

/** JupyterLab takes the keys of what has the focus for commands, an arrow or a letter, unless that itself says no. */
const keepKeys = ({ target }) => (target.dataset.lmSuppressShortcuts = "true");

/** Show a showpiece in `el`, as one view of `model`; returns what takes it off again. */
export function mount(show, model, el) {
  const controls = make("div", { className: "controls" }), pictures = make("div", { className: "pictures" });
  const sentence = make("p"), point = make("p", { className: "point" });
  sentence.setAttribute("aria-live", "polite");
  const caption = make("p", { className: "caption", textContent: `Try: ${model.get("caption")}` });
  const box = make("div", { className: "rtx-page" }, make("style", { textContent: STYLE }));
  box.addEventListener("focusin", keepKeys);
  box.append(controls, pictures, sentence, point, caption);
  el.append(box);

  const puts = {}, drawns = [];
  let update = () => "";
  const page = {
    data: model.get("data"),
    dark: false,
    ink: "#222",
    point: (text) => (point.textContent = text),
    /** Add a picture; `drawn` is called after each update. */
    picture(element, drawn = () => {}) {
      pictures.append(element);
      drawns.push(drawn);
    },
    set(values) {
      model.set("state", { ...model.get("state"), ...values });
      model.save_changes();
    },
    control(name, put, element) {
      puts[name] = put;
      controls.append(element);
    },
  };
  const redraw = () => {
    page.dark = isDark(el);
    page.ink = page.dark ? "#e8e8e8" : "#222";
    box.style.setProperty("--rtx-ink", page.ink);
    const state = model.get("state");
    const text = update(state);
    for (const [name, put] of Object.entries(puts)) put(state[name]);
    if (sentence.textContent !== text) sentence.textContent = text;
    drawns.forEach((drawn) => drawn()); // what is under the mouse may be another now
  };
  update = show(page);
  redraw();

  model.on("change:state", redraw);
  const resized = new ResizeObserver(redraw);
  resized.observe(pictures);
  const themed = new MutationObserver(() => setTimeout(redraw, 100)); // once its colours are there
  for (const one of [document.documentElement, document.body])
    themed.observe(one, { attributes: true, attributeFilter: ["class", "data-theme", "data-jp-theme-light"] });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", redraw);
  return () => {
    model.off("change:state", redraw);
    resized.disconnect();
    themed.disconnect();
    scheme.removeEventListener("change", redraw);
  };
}

/** A model without a kernel, for a page that stands alone. */
export function fixed(traits) {
  const listeners = [];
  return {
    get: (name) => traits[name],
    set(name, value) {
      traits[name] = value;
      listeners.forEach((listen) => listen());
    },
    on: (_, listen) => listeners.push(listen),
    off() {},
    save_changes() {},
  };
}
