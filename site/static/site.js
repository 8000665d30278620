// The theme, before the page is drawn; then what every page has: the choice of the theme, boxes that scroll by keyboard.
{
  const KEY = "rtx-theme";
  const kept = () => {
    try {
      return localStorage.getItem(KEY) ?? "system";
    } catch {
      return "system"; // a browser may forbid storage
    }
  };
  const put = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  put(kept());

  const offerThemes = () => {
    const label = document.querySelector(".theme"), choice = label.querySelector("select");
    label.hidden = false;
    choice.value = kept();
    choice.addEventListener("change", () => {
      put(choice.value);
      try {
        localStorage.setItem(KEY, choice.value);
      } catch {} // then it holds for this page
    });
  };

  const scrollByKeyboard = () => {
    const sized = new ResizeObserver((entries) => {
      for (const { target } of entries)
        if (target.scrollWidth > target.clientWidth) Object.assign(target, { tabIndex: 0, role: "group", ariaLabel: "scrolls sideways" });
        else ["tabindex", "role", "aria-label"].forEach((name) => target.removeAttribute(name));
    });
    document.querySelectorAll("pre, .scroll, .math.block").forEach((box) => sized.observe(box));
  };

  document.addEventListener("DOMContentLoaded", () => {
    offerThemes();
    scrollByKeyboard();
  });
}
