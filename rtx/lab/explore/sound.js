// Notes to hear and to take away. A note is { key, start, end }: a key of the roll, and the frames it sounds in.

import { button } from "./page.js";

const LOUDNESS = 0.12, VOICES = 4, ATTACK = 0.02, RELEASE = 0.15; // of a note, of so many at once; times in seconds

/**
 * Send every note to the loudspeaker, an oscillator for each, and say how to ask for the time played and how to stop.
 * A tune of many notes at once is as loud as one of few.
 */
function play(notes, lowest, seconds) {
  const audio = new AudioContext();
  const volume = new GainNode(audio), limiter = new DynamicsCompressorNode(audio);
  volume.connect(limiter).connect(audio.destination);
  const zero = audio.currentTime + 0.1;
  const length = Math.max(...notes.map(({ end }) => end)) - Math.min(...notes.map(({ start }) => start));
  const atOnce = notes.reduce((sum, { start, end }) => sum + end - start, 0) / length;
  const loudness = LOUDNESS * Math.sqrt(VOICES / Math.max(1, atOnce));
  for (const { key, start, end } of notes) {
    const from = zero + start * seconds, to = zero + end * seconds;
    const frequency = 440 * 2 ** ((lowest + key - 69) / 12);
    const tone = new OscillatorNode(audio, { type: "triangle", frequency });
    const envelope = new GainNode(audio, { gain: 0 });
    envelope.gain.setValueAtTime(0, from);
    envelope.gain.linearRampToValueAtTime(loudness, from + ATTACK);
    envelope.gain.setTargetAtTime(loudness / 2, from + ATTACK, 0.5);
    envelope.gain.setTargetAtTime(0, to, RELEASE / 4);
    tone.connect(envelope).connect(volume);
    tone.start(from);
    tone.stop(to + RELEASE);
  }
  return {
    time: () => Math.max(0, audio.currentTime - zero),
    stop() {
      volume.gain.setTargetAtTime(0, audio.currentTime, 0.01); // a sudden silence would click
      setTimeout(() => audio.close(), 100);
    },
  };
}

/**
 * Plays one tune at a time, by name: what else sounds is stopped. `changed(name)` is called for each picture while one
 * plays, and when it ends; `element` is part of the page as long as it may sound.
 */
export function turntable({ lowest, seconds }, element, changed) {
  let on = null, next = 0;
  const frame = (name) => (on?.name === name ? on.from + on.sound.time() / seconds : undefined);
  function stop() {
    if (!on) return;
    const { name, sound } = on;
    cancelAnimationFrame(next);
    sound.stop();
    on = null;
    changed(name);
  }
  function follow() {
    if (frame(on.name) > on.frames + RELEASE / seconds || !element.isConnected) return stop();
    changed(on.name);
    next = requestAnimationFrame(follow);
  }
  /** Play notes from a frame on, up to `frames`. */
  function start(name, notes, frames, from = 0) {
    stop();
    const rest = notes.filter(({ end }) => end > from);
    const moved = rest.map(({ key, start, end }) => ({ key, start: Math.max(0, start - from), end: end - from }));
    on = { name, frames, from, sound: play(moved, lowest, seconds) };
    follow();
  }
  return { start, stop, frame };
}

/** A button that plays and stops a tune, whose name is `name()`; call what is returned with whether it plays. */
export function playButton(page, name, press) {
  const element = button(page, "", press);
  return (plays) => {
    element.style.minWidth = plays ? `${element.offsetWidth}px` : ""; // the button beside it stays where it is
    element.textContent = plays ? "■ Stop" : `▶ Play ${name()}`;
  };
}

/** A button that saves a tune as a MIDI file; `tune()` gives its notes. */
export function saveButton(page, name, tune) {
  return button(page, "Save MIDI", () => {
    const bytes = midi(tune(), page.data.lowest, page.data.seconds);
    const address = URL.createObjectURL(new Blob([bytes], { type: "audio/midi" }));
    Object.assign(document.createElement("a"), { href: address, download: `${name}.mid` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
}

/** The notes as a MIDI file (Standard MIDI Files 1.0, format 0): its bytes. A frame is an eighth note. */
function midi(notes, lowest, seconds) {
  const TICKS = 240; // of a frame: 480 a quarter
  const events = notes.flatMap(({ key, start, end }) => [
    { tick: start * TICKS, bytes: [0x90, lowest + key, 80] },
    { tick: end * TICKS, bytes: [0x80, lowest + key, 0] },
  ]);
  events.sort((a, b) => a.tick - b.tick || a.bytes[0] - b.bytes[0]); // an end comes before a new start
  const number = (value, size) => Array.from({ length: size }, (_, i) => (value >> (8 * (size - 1 - i))) & 255);
  const short = (value) => (value < 128 ? [value] : [...short(value >> 7).map((byte) => byte | 128), value & 127]);
  const track = [0, 0xff, 0x51, 3, ...number(Math.round(2e6 * seconds), 3)]; // microseconds of a quarter
  let now = 0;
  for (const { tick, bytes } of events) {
    track.push(...short(tick - now), ...bytes);
    now = tick;
  }
  track.push(0, 0xff, 0x2f, 0);
  const text = (letters) => [...letters].map((letter) => letter.charCodeAt(0));
  const head = [...text("MThd"), ...number(6, 4), ...number(0, 2), ...number(1, 2), ...number(2 * TICKS, 2)];
  return new Uint8Array([...head, ...text("MTrk"), ...number(track.length, 4), ...track]);
}
