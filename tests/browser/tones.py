"""What a page sends to the loudspeaker: window.made has every audio context and every tone, with its times."""

from playwright.sync_api import Page as Tab

# A tab is used by several tests, each of which may add this.
KEEP_TONES = """if (!window.made) {
window.made = { contexts: [], tones: [] };
const { AudioContext, OscillatorNode } = window;
window.AudioContext = class extends AudioContext {
    constructor() { super(); window.made.contexts.push(this); }
};
window.OscillatorNode = class extends OscillatorNode {
    constructor(context, options) {
        super(context, options);
        this.times = { frequency: options.frequency };
        window.made.tones.push(this.times);
    }
    start(time) { this.times.start = time; super.start(time); }
    stop(time) { this.times.stop = time; super.stop(time); }
};
}"""


def heard(tab: Tab) -> list[tuple[float, float, float]]:
    """Frequency, start and length in seconds of each tone, from the first on; a tone dies away for 0.15 s."""
    tones = tab.evaluate("made.tones")
    zero = min(tone["start"] for tone in tones)
    return sorted(
        (round(t["frequency"], 1), round(t["start"] - zero, 3), round(t["stop"] - t["start"] - 0.15, 2)) for t in tones
    )


def silent(tab: Tab, context: int = 0) -> None:
    """Wait until a context is closed."""
    tab.wait_for_function(f"made.contexts[{context}].state === 'closed'")
