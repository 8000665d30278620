// Brings the explorers to life. Each place has a script element with its module's name and its traits as JSON, and a
// picture for where no script runs; site/build.py wrote both.

/** A model without a kernel: its traits, and the functions that listen to them. */
function modelOf(traits) {
  const listeners = [];
  return {
    get: (name) => traits[name],
    set(name, value) {
      traits[name] = value;
      for (const [event, listen] of [...listeners]) if (event === `change:${name}`) listen();
    },
    on: (event, listen) => listeners.push([event, listen]),
    off(event, listen) {
      const place = listeners.findIndex(([one, other]) => one === event && other === listen);
      if (place >= 0) listeners.splice(place, 1);
    },
    save_changes() {},
  };
}

/** Bytes that JSON holds as base64 text. */
const bytesOf = (text) => new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

async function bringToLife(place) {
  const { module, page, traits, bytes } = JSON.parse(place.querySelector("script").textContent);
  const { default: piece } = await import(new URL(`living/${module}`, import.meta.url));
  const element = document.createElement("div");
  place.append(element); // in the page before it is drawn, because it asks for its width
  if (piece.start) {
    const address = new URL(`explore/${page}.html`, import.meta.url).href;
    piece.start({ ...traits, ...bytes }, element, { address, own: place.closest(".explorer") !== null });
  } else {
    for (const [name, text] of Object.entries(bytes)) traits[name] = bytesOf(text);
    piece.render({ model: modelOf(traits), el: element });
  }
  place.querySelector("img").remove(); // it stays where anything failed
}

document.querySelectorAll(".living").forEach(bringToLife);
