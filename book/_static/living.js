// Brings a notebook's pages to life on a site without a kernel. Each stands there as its picture, followed by a
// script element with its ES module and its traits as JSON; tools/build_book.py wrote both.

/** The model that a widget sees: its traits, and whoever listens to them. */
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
      for (let i = listeners.length - 1; i >= 0; i--)
        if (listeners[i][0] === event && listeners[i][1] === listen) listeners.splice(i, 1);
    },
    save_changes() {},
  };
}

/** Bytes that JSON holds as base64 text. */
function bytesOf(text) {
  return new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

async function bringToLife(holder) {
  const { module, traits, buffers } = JSON.parse(holder.textContent);
  for (const [name, text] of Object.entries(buffers)) traits[name] = bytesOf(text);
  const address = URL.createObjectURL(new Blob([module], { type: "text/javascript" })); // also where there is no server
  const place = document.createElement("div");
  holder.after(place); // in the page before it is drawn: it asks how wide it is
  (await import(address)).default.render({ model: modelOf(traits), el: place });
  holder.previousElementSibling.remove(); // the picture; it stays where anything failed
}

document.addEventListener("DOMContentLoaded", () => {
  for (const holder of document.querySelectorAll("script.rtx-living")) bringToLife(holder);
});
