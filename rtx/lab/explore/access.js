// What ipywidgets' controls lack in JupyterLab: their keys, and names and values that are read aloud. It stands
// among the controls and shows nothing.

const text = (element) => element?.textContent.trim() ?? "";
const put = (element, name, value) => element.getAttribute(name) === value || element.setAttribute(name, value);

/** JupyterLab takes the keys of what has the focus for commands, an arrow or a letter, unless that itself says no. */
const keepKeys = ({ target }) => (target.dataset.lmSuppressShortcuts = "true");

function name(box) {
  for (const slider of box.querySelectorAll("[role=slider]")) {
    const row = slider.closest(".widget-inline-hbox"), shown = row.querySelector(".widget-readout");
    put(slider, "aria-label", text(row.querySelector(".widget-label")));
    put(slider, "aria-valuetext", text(shown)); // else a choice would be told by its number
    if (!shown?.isContentEditable) continue;
    put(shown, "role", "textbox");
    put(shown, "aria-label", `${text(row.querySelector(".widget-label"))}, typed`);
  }
  for (const toggle of box.querySelectorAll(".widget-toggle-button"))
    put(toggle, "aria-pressed", String(toggle.classList.contains("mod-active")));
  for (const status of box.querySelectorAll("[role=status]"))
    put(status.parentElement, "aria-live", "polite"); // it stays, while the status in it is made anew
  for (const image of box.querySelectorAll("img.widget-image")) put(image, "alt", text(box.querySelector(".rtx-seen")));
}

function render({ el }) {
  let watch, next;
  const attach = () => {
    const box = el.closest(".widget-vbox");
    if (!box) return (next = setTimeout(attach, 50)); // it is drawn before it is put in its place
    box.addEventListener("focusin", keepKeys);
    watch = new MutationObserver(() => name(box));
    const attributes = ["class", "aria-valuetext"];
    watch.observe(box, { subtree: true, childList: true, characterData: true, attributeFilter: attributes });
    name(box);
  };
  attach();
  return () => {
    clearTimeout(next);
    watch?.disconnect();
  };
}

export default { render };
