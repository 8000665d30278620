// Brings the explorers to life. Each place has a script element with its module's name and its traits as JSON, and a
// picture for where no script runs; site/build.py wrote both.

async function bringToLife(place) {
  const { module, page, traits, bytes } = JSON.parse(place.querySelector("script").textContent);
  const { default: piece } = await import(new URL(`living/${module}`, import.meta.url));
  const element = document.createElement("div");
  place.append(element); // in the page before it is drawn, because it asks for its width
  const address = new URL(`explore/${page}.html`, import.meta.url).href;
  piece.start({ ...traits, ...bytes }, element, { address, own: place.closest(".explorer") !== null });
  place.querySelector("img").remove(); // it stays where anything failed
  // The explorers' headings come after those of the page, whichever these are.
  const isBefore = (one) => one.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING;
  const above = [...document.querySelectorAll("main :is(h1, h2)")].findLast(isBefore);
  const levels = place.closest(".explorer") ? ["h4"] : ["h3", "h4"]; // its own page shows no title of the explorer
  levels.forEach((kind, i) => place.querySelectorAll(kind).forEach((one) => (one.ariaLevel = Number(above.tagName[1]) + 1 + i)));
}

document.querySelectorAll(".living").forEach(bringToLife);
