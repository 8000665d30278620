// Charts on a canvas: axes, lines, legends, heat maps. A box is { x, y, width, height } in CSS pixels.

import { make } from "./page.js";

/** The colours of series, in order: seaborn's palette "colorblind", but its blue is lighter, for dark paper. */
export const SERIES = ["#1a86cf", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#949494", "#56b4e9"];

/** A number in a few letters. */
export const short = (value) => {
  const size = Math.abs(value);
  return size && (size < 0.001 || size >= 100_000) ? value.toExponential(0) : String(Number(value.toPrecision(4)));
};

/** About `count` round values from `low` to `high`, in either order. */
function ticks(low, high, count) {
  const rough = Math.abs(high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => 1.42 * one * power > rough);
  const [first, last] = [Math.ceil(Math.min(low, high) / step), Math.floor(Math.max(low, high) / step)];
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/**
 * Draw axes in a box and return where values stand: x(value), y(value), and back: at(pixel) and yAt(pixel).
 *
 * `x` and `y` are the ranges [low, high]; `title` stands above, `across` and `up` name the axes; `grid` draws lines.
 */
export function axes(pen, page, box, { x, y, title = "", across = "", up = "", grid = true }) {
  const right = box.x + box.width, bottom = box.y + box.height;
  const place = {
    box,
    x: (value) => box.x + ((value - x[0]) / (x[1] - x[0] || 1)) * box.width,
    y: (value) => bottom - ((value - y[0]) / (y[1] - y[0] || 1)) * box.height,
    at: (pixel) => x[0] + ((pixel - box.x) / box.width) * (x[1] - x[0]),
    yAt: (pixel) => y[0] + ((bottom - pixel) / box.height) * (y[1] - y[0]),
  };
  pen.save();
  Object.assign(pen, { lineWidth: 1, fillStyle: page.ink, strokeStyle: page.faint, textAlign: "right" });
  for (const value of ticks(...y, box.height < 100 ? 2 : 4)) {
    if (grid) line(pen, [[box.x, place.y(value)], [right, place.y(value)]]);
    pen.fillText(short(value), box.x - 6, place.y(value));
  }
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const value of ticks(...x, Math.max(2, box.width / 60))) pen.fillText(short(value), place.x(value), bottom + 5);
  pen.fillText(across, box.x + box.width / 2, bottom + 21);
  pen.textAlign = "left";
  pen.textBaseline = "bottom";
  pen.fillText(up, Math.max(0, box.x - 34), box.y - 10);
  pen.font = `600 ${pen.font}`;
  pen.fillText(title, box.x + (up ? pen.measureText(up).width + 8 : 0), box.y - 10);
  line(pen, [[box.x, bottom], [right, bottom]], { strokeStyle: page.ink });
  pen.restore();
  return place;
}

/** A line through pixels [x, y]. */
export function line(pen, points, style = {}, dash = []) {
  pen.save();
  Object.assign(pen, style);
  pen.setLineDash(dash);
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
  pen.stroke();
  pen.restore();
}

/** A band around a line, from low to high at each point [x, y, low, high]. */
export function band(pen, place, points, colour) {
  Object.assign(pen, { fillStyle: colour, globalAlpha: 0.25 });
  pen.beginPath();
  for (const [x, , low] of points) pen.lineTo(place.x(x), place.y(low));
  for (const [x, , , high] of points.toReversed()) pen.lineTo(place.x(x), place.y(high));
  pen.fill();
  pen.globalAlpha = 1;
}

/** A filled circle. */
export function disc(pen, x, y, radius) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}

/** Names of series, [text, colour], below one another at the right of a box, at its top or its bottom. */
export function legend(pen, page, { x, y, width, height }, top, entries) {
  pen.textAlign = "right";
  entries.forEach(([text, colour], i) => {
    const middle = top ? y + 10 + 17 * i : y + height - 17 * (entries.length - i);
    pen.fillStyle = colour;
    pen.fillRect(x + width - 12, middle - 5, 10, 10);
    pen.fillStyle = page.ink;
    pen.fillText(text, x + width - 18, middle);
  });
}

/** A map with a pixel for each cell: `colour(row, column)` gives [red, green, blue], perhaps with alpha, or nothing. */
export function bitmap(rows, columns, colour) {
  const image = make("canvas", { width: columns, height: rows });
  const pen = image.getContext("2d"), pixels = pen.createImageData(columns, rows);
  for (let cell = 0; cell < rows * columns; cell++) {
    const [red, green, blue, alpha = 255] = colour(Math.floor(cell / columns), cell % columns) || [0, 0, 0, 0];
    pixels.data.set([red, green, blue, alpha], 4 * cell);
  }
  pen.putImageData(pixels, 0, 0);
  return image;
}

/** Draw a bitmap in a box, with sharp edges; the first row on top. */
export function heatMap(pen, { x, y, width, height }, image) {
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, x, y, width, height);
}

/** A scale of colours from 0 to 1, 100 pixels long, between two texts. */
export function colourBar(pen, page, x, y, colour, from, to) {
  const left = x + pen.measureText(from).width + 6;
  Object.assign(pen, { textAlign: "left", fillStyle: page.ink });
  pen.fillText(from, x, y);
  pen.fillText(to, left + 106, y);
  heatMap(pen, { x: left, y: y - 5, width: 100, height: 10 }, bitmap(1, 100, (_, i) => colour(i / 99)));
}
