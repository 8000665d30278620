// MathJax 2, from the site itself and with its own fonts.
window.MathJax = {
  config: ["TeX-AMS-MML_HTMLorMML-full.js"],
  extensions: ["AssistiveMML.js"],
  showMathMenu: false,
  menuSettings: { inTabOrder: false }, // there is nothing to press
  messageStyle: "none",
  MMLorHTML: { prefer: "HTML" },
  "HTML-CSS": {
    availableFonts: [],
    preferredFont: null,
    webFont: "STIX-Web",
    imageFont: null,
    styles: { "@font-face": { "font-family": "MathJax_Blank", src: "local('none')" } }, // it asks for about:blank else
  },
  tex2jax: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]], ignoreClass: "tex2jax_ignore", processClass: "math" },
};
