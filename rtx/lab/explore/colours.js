// Colours as [red, green, blue], of numbers from 0 to 1, or -1 to 1. Fit for readers who confuse red and green.

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
/** A colour in CSS. */
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
/** The style of a cell or a letter on a colour. */
export const shaded = (colour) => `background: ${css(colour)}; color: ${inkOn(colour)}`;
