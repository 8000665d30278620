"""Explorer of a sentence: what three character models predict next, and which letters of it they remember.

Wang et al. (2019), R-Transformer, §4.3, compares such models. These are small, and come with the package.
"""

from rtx.lab.explore.network import described
from rtx.lab.explore.page import HERE, Page, bundle
from rtx.lab.pretrained import card_of, pretrained, weights

MODELS = {name: f"characters-{name.lower()}" for name in ("GRU", "Transformer", "R-Transformer")}
LONGEST = 96  # letters: the models were trained on pieces of this length
PRESETS = {
    "Quotation": 'the string "abc',
    "Bracket": "the method (see below",
    "Star": "the *expression_list",
    "Numbers in a bracket": "the tuple (1, 2, 3",
    "A name again": "__getitem__ calls __geti",
}


def sentence(text: str = "The value of the expression is the val") -> Page:
    """Three character models read a text; each letter is shaded by how much another one would change the prediction.

    The change is half the sum of the differences between the probabilities of the next letter, with the letter and
    with an "e" in its place ("a" for an "e", a blank for a mark). The models have about 37,000 parameters each, and
    have read the Python reference manual. Each can write on. Of a text, the first 96 letters are read.
    """
    models, files = [], b""
    for name, file in MODELS.items():
        begin, files = len(files), files + weights(file)
        models.append({"name": name, "network": described(pretrained(file)), "from": begin, "to": len(files)})
    listen = "onmessage = (event) => $sentence_worker.answer(event, postMessage);\n"
    return Page(
        "sentence.js",
        {
            "models": models,
            "symbols": card_of(MODELS["GRU"])["texts"][0]["symbols"],
            "longest": LONGEST,
            "worker": bundle(HERE / "sentence_worker.js", listen, frame=False),
        },
        "look at the bracket and the star: which model wants to close them? The bluer a letter, the more the "
        "prediction would change with another letter in its place. The models have read the Python reference "
        "manual, nothing else. A click on a letter makes them read only up to it.",
        title="What does it remember of your sentence?",
        presets={name: {"text": text, "read": 0} for name, text in PRESETS.items()},
        weights=files,
        text=text,
        read=0,
        temperature=0.7,
    )
