// Notes to hear. A note is { key, start, end }: a key of the roll, and the frames it sounds in.

const LOUDNESS = 0.12, ATTACK = 0.02, RELEASE = 0.15; // of a note; times in seconds

/** Let a key sound from one time of an audio context to another, and then fade. */
function sound(audio, volume, midi, from, to) {
  const tone = new OscillatorNode(audio, { type: "triangle", frequency: 440 * 2 ** ((midi - 69) / 12) });
  const envelope = new GainNode(audio, { gain: 0 });
  envelope.gain.setValueAtTime(0, from);
  envelope.gain.linearRampToValueAtTime(LOUDNESS, from + ATTACK);
  envelope.gain.setTargetAtTime(LOUDNESS / 2, from + ATTACK, 0.5);
  envelope.gain.setTargetAtTime(0, to, RELEASE / 4);
  tone.connect(envelope).connect(volume);
  tone.start(from);
  tone.stop(to + RELEASE);
}

/**
 * Plays one tune at a time, by name: what else sounds is stopped. `changed()` is called for each picture while one plays,
 * and when it ends; `element` is part of the page as long as it may sound.
 */
export function turntable({ lowest, seconds }, element, changed) {
  let on = null;
  const now = () => on.from + Math.max(0, on.audio.currentTime - on.zero) / seconds;
  function stop() {
    if (!on) return;
    const { audio, volume } = on;
    volume.gain.setTargetAtTime(0, audio.currentTime, 0.01); // a sudden silence would click
    setTimeout(() => audio.close(), 100);
    on = null;
    changed();
  }
  function follow(tune) {
    if (on !== tune) return;
    if (now() > tune.frames + RELEASE / seconds || !element.isConnected) return stop();
    changed();
    requestAnimationFrame(() => follow(tune));
  }
  /** Play notes from a frame on, up to `frames`. */
  function start(name, notes, frames, from = 0) {
    stop();
    const audio = new AudioContext(), volume = new GainNode(audio), zero = audio.currentTime + 0.1;
    volume.connect(new DynamicsCompressorNode(audio)).connect(audio.destination); // many notes at once do not distort
    const time = (frame) => zero + Math.max(0, frame - from) * seconds;
    for (const { key, start, end } of notes) if (end > from) sound(audio, volume, lowest + key, time(start), time(end));
    on = { name, frames, from, zero, audio, volume };
    follow(on);
  }
  /** The frame of a tune that sounds now, if it plays. */
  const frame = (name) => (on?.name === name ? now() : undefined);
  return { start, stop, frame };
}
