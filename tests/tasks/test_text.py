"""Texts: cut, numbered, each token scored once; a stream in pieces is the text read whole; baselines; bad files."""

import math
import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rtx
from rtx.tasks import task_by_name
from rtx.tasks.cache_pointer import cache_pointer
from rtx.tasks.loader import loader
from rtx.tasks.losses import bits, perplexity, token_nll, tokens_measured
from rtx.tasks.task import IGNORED, SPLITS, Batch, Text
from rtx.tasks.text import characters, ptb_char, ptb_word, windows, words
from rtx.tasks.vocabulary import END, UNKNOWN, vocabulary

STORY = "the cat sat on the mat.\nthe dog sat on the cat.\n" * 40


@pytest.fixture
def story(tmp_path):
    path = tmp_path / "story.txt"
    path.write_text(STORY, encoding="utf-8")
    return path


@given(st.integers(1, 60), st.integers(0, 20), st.integers(1, 20))
def test_every_token_is_scored_exactly_once_and_read_in_its_place(length, context, scored):
    tokens = torch.arange(1, length + 1)
    found = []
    for at, (inputs, target) in enumerate(windows([tokens], 0, context, scored)):
        here = target != IGNORED
        found += target[here].tolist()
        assert here[-len(target[here]) :].all() and int((~here).sum()) == min(context, at * scored)
        # each input is the token before its target, so the numbers run on through context and scored tokens
        assert inputs.tolist() == list(range(found[-1] - len(inputs), found[-1]))
    assert found == tokens.tolist()


@pytest.mark.parametrize("name", ["characters", "words"])
def test_the_manual_is_split_by_position_and_read_back(name):
    task = task_by_name(name, context=0, scored=1000)
    (known,) = task.texts
    assert isinstance(known, Text) and task.inputs == task.outputs == known.size
    counts = {split: sum(len(e.target) for e in task.split(split)) for split in SPLITS}
    total = sum(counts.values())
    assert counts["train"] == total * 18 // 20 and abs(counts["test"] - counts["validation"]) <= 1
    assert counts["validation"] > 1000
    piece = task.split("train")[0].target.tolist()
    assert "assert" in known.decode(piece).lower()
    assert known.encode(known.decode(piece)) == piece
    assert len(task.sha256()) == 64


def test_the_vocabulary_is_of_the_training_side_alone(tmp_path):
    path = tmp_path / "late.txt"
    path.write_text("a b " * 100 + "\N{SNOWMAN} zebra zebra zebra zebra")
    for task in (characters(path), words(path)):
        (known,) = task.texts
        assert "\N{SNOWMAN}" not in known.symbols and "zebra" not in known.symbols
        assert known.symbols.index(UNKNOWN) in task.split("test")[-1].target.tolist()


def test_rare_words_are_unknown(story):
    story.write_text(STORY + "\n".join(["once"] + ["the cat"] * 30))
    (known,) = words(story).texts
    assert "once" not in known.symbols
    assert known.decode(known.encode("the once\ncat")) == "the <unk>\ncat"


@pytest.mark.parametrize(
    ("symbols", "start"),
    [(["the", END, "cat"], END), (["a", " ", "\n"], "\n"), (["a", " "], " "), (["b", "a"], "b")],
)
def test_a_text_starts_with_the_end_of_a_line_or_a_blank(symbols, start):
    """Without such a symbol, behind the commonest."""
    assert symbols[vocabulary("words", symbols).start] == start


@given(st.text(st.sampled_from("ab\n .,<é"), max_size=30))
def test_characters_come_back_as_they_were(text):
    known = vocabulary("characters", list("ab\n .,<é"))
    assert known.decode(known.encode(text)) == text


def test_words_are_cut_at_blanks_or_at_marks_and_lines_are_words():
    text = "f(x) is <unk>.\nIt's N"
    prepared = vocabulary("words", ["f(x)", "is", "<unk>.", "<eos>", "It's", "N"])
    assert prepared.decode(prepared.encode(text)) == text
    marked = vocabulary("words and marks", ["f", "(", "x", ")", "is", "<unk>", ".", "<eos>", "It", "'", "s", "N"])
    assert marked.decode(marked.encode(text)) == "f ( x ) is <unk> .\nIt ' s N"


def test_symbols_and_tokens_that_are_not_there_are_refused():
    known = vocabulary("characters", "abc")
    with pytest.raises(ValueError, match="^text: 'd' .* 3 characters"):
        known.encode("abd")
    for token in (-1, 3):
        with pytest.raises(ValueError, match=f"tokens: expected numbers from 0 to 2, got {token}"):
            known.decode([0, token])


def random_batch() -> tuple[torch.Tensor, Batch]:
    draws = torch.Generator().manual_seed(0)
    targets = torch.randint(0, 7, (3, 9), generator=draws)
    targets[:, :4] = IGNORED
    batch = Batch(torch.zeros_like(targets), targets, torch.full((3,), 9))
    return torch.randn(3, 9, 7, generator=draws), batch


def test_perplexity_is_exp_of_the_mean_loss_and_bits_are_its_logarithm():
    logits, batch = random_batch()
    loss = token_nll(logits, batch)
    p = logits.double().softmax(-1)
    textbook = -sum(p[b, t, batch.targets[b, t]].log() for b in range(3) for t in range(4, 9))
    torch.testing.assert_close(loss.total.double(), textbook)
    assert loss.count == 15
    for scorer, expected in ((perplexity(), math.exp(textbook / 15)), (bits(), textbook / 15 / math.log(2))):
        for part in (slice(0, 1), slice(1, 3)):
            scorer.update(*tokens_measured(logits[part], Batch(*(each[part] for each in batch))))
        assert float(scorer.compute()) == pytest.approx(float(expected), rel=1e-5)


def test_the_baseline_scores_every_test_token_by_its_training_frequency(story):
    ends = ["a cat and a dog and a cat.\n", "a mat on a log on a mat.\n"]  # of which validation and test are
    story.write_text(STORY + "".join(5 * end for end in ends))
    for task, base in ((characters(story), 2), (words(story), math.e)):
        train, test = ([t for e in task.split(s) for t in e.target.tolist() if t != IGNORED] for s in ("train", "test"))
        mean = -sum(math.log((train.count(t) + 1) / (len(train) + task.inputs)) for t in test) / len(test)
        expected = mean / math.log(2) if base == 2 else math.exp(mean)
        assert task.baseline() == pytest.approx(expected)


@pytest.mark.parametrize("model", ["lstm", "awd-lstm", "transformer-xl"])
def test_a_text_read_in_pieces_with_a_state_is_the_text_read_at_once(story, model):
    torch.manual_seed(0)
    task = words(story, context=0, scored=7)
    arguments = {"segment": 4, "memory": 8, "heads": 2} if model == "transformer-xl" else {}
    network = rtx.build(task, model, d_model=8, layers=2, **arguments).double().eval()
    state, found = None, []
    for batch in loader(task, "test", 1, order="columns"):
        logits, state = network.read(batch.inputs, state)
        found.append(logits)
    inputs = torch.cat([example.inputs for example in task.split("test")])
    torch.testing.assert_close(torch.cat(found, 1), network(inputs[None]), atol=1e-10, rtol=0)


def test_a_stream_is_examined_with_and_without_the_cache(story):
    torch.manual_seed(0)
    task = words(story, context=0, scored=7)
    network = rtx.build(task, "lstm", d_model=8).eval()
    found = task.examine(network, "test", None)
    inputs = torch.cat([example.inputs for example in task.split("test")])[None]
    target = torch.cat([example.target for example in task.split("test")])[None]
    hidden = network.backbone(network.embed(inputs))
    mixed, _ = cache_pointer(hidden, target, network.decoder(hidden))
    whole = Batch(inputs, target, torch.tensor([inputs.shape[1]]))
    assert found["perplexity"] == pytest.approx(task.score(network(inputs), whole), rel=1e-4)
    assert found["perplexity with cache"] == pytest.approx(task.score(mixed, whole), rel=1e-4)


@pytest.mark.parametrize(
    ("form", "counts"),
    [
        ("unmarked", {"validation": 396_412, "test": 446_184}),
        ("eos", {"train": 5_269_890, "validation": 413_262, "test": 464_989}),
    ],
)
def test_penn_treebank_by_characters_has_two_forms(real_data, form, counts):
    task = ptb_char(form, context=0, scored=6_000_000)
    assert {split: len(task.split(split)[0].target) for split in counts} == counts
    (known,) = task.texts
    assert len(known.symbols) == task.inputs == 49
    start = known.decode(task.split("validation")[0].target[:30].tolist())
    assert "consumers may want" in start


def test_penn_treebank_by_words_has_the_published_counts(real_data):
    task = ptb_word(context=0, scored=1_000_000)
    assert tuple(len(task.split(split)[0].target) for split in SPLITS) == (929_589, 73_760, 82_430)
    (known,) = task.texts
    assert known.size == 10_000
    line = "consumers may want to move their telephones a little closer to the tv set\n"
    assert known.decode(task.split("validation")[0].target[:15].tolist()) == line
    assert 600 < task.baseline() < 700


def test_penn_treebank_can_be_planned_for_without_its_files(monkeypatch, tmp_path):
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    monkeypatch.delenv("RTX_DATA", raising=False)
    assert [task_by_name(name).inputs for name in ("ptb-word", "ptb-char")] == [10_000, 49]


def test_files_from_other_systems_read_the_same(story, tmp_path):
    other = tmp_path / "other.txt"
    crlf = STORY.replace("\n", "\r\n")
    for content in (b"\xef\xbb\xbf" + crlf.encode(), crlf.encode("utf-16"), b"\xfe\xff" + crlf.encode("utf-16-be")):
        other.write_bytes(content)
        assert characters(other).sha256() == characters(story).sha256()
    assert characters(other).name == "characters:other.txt"


@pytest.mark.parametrize(
    "line", ["यह हिन्दी में है", "เด็ก ดี", "اَلْعَرَبِيَّةُ لُغَةٌ", "Tiếng Việt", "naïve cafe\u0301s", "क्\u200dष", "q\u0323\u0307 x"]
)
def test_a_combining_mark_stays_with_its_letter_and_composed_letters_are_the_same(story, line):
    composed = unicodedata.normalize("NFC", line)
    for form in ("NFC", "NFD"):
        story.write_text((unicodedata.normalize(form, line) + ".\n") * 40, encoding="utf-8")
        (known,) = words(story).texts
        assert {*known.symbols} == {*composed.split(), ".", END, UNKNOWN}
        assert known.decode(known.encode(unicodedata.normalize("NFD", line))) == composed
        (known,) = characters(story).texts
        assert known.decode(known.encode(unicodedata.normalize("NFD", line))) == composed
        assert not [one for one in known.symbols if unicodedata.category(one[0]).startswith("M")]


def test_only_a_newline_ends_a_line(story):
    story.write_text("one\u2028two\x85three\x0cfour\x1cfive.\r\n" * 40, encoding="utf-8", newline="")
    task = words(story, context=0, scored=1000)
    tokens = [token for split in SPLITS for example in task.split(split) for token in example.target.tolist()]
    assert task.texts[0].decode(tokens).count("\n") == 39 and len(tokens) == 40 * 7 - 1  # the last is not a word


@pytest.mark.parametrize(
    ("make", "content", "message"),
    [
        (characters, b"", "mine.txt: expected a text"),
        (words, b" \n\n", "mine.txt: expected a text"),
        (characters, b"\xef\xbb\xbf", "mine.txt: expected a text"),
        (characters, b"too short", ".* 20 symbols, got 9"),
        (words, " ".join(map(str, range(40))).encode(), ".* 2 times"),
        (words, "erste Zeile\nzweite \xe9".encode("latin-1"), "mine.txt: .* 0xe9 at offset 19"),
        (words, b"\xef\xbb\xbfa\nb\xe9", "mine.txt: .* 0xe9 at offset 6"),
        (characters, STORY.encode("utf-16-be"), "mine.txt: .* 0x00 at offset 0"),
        (words, "हिन्दी में\n".encode("utf-16-le") * 40, "mine.txt: .* got the byte 0x"),
        (words, STORY.encode("utf-32"), "mine.txt: .* 0x00 at offset 2"),  # its mark begins as that of UTF-16
        (characters, STORY.encode("utf-16")[:-1], "mine.txt: .* 0x0a at offset 3840"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path, make, content, message):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        make(path)
    with pytest.raises(FileNotFoundError, match="none.txt"):
        make(tmp_path / "none.txt")


def test_decoding_what_is_scored_gives_the_loss_and_the_score_of_decoding_all():
    task = characters(context=5, scored=7)
    torch.manual_seed(0)
    network = rtx.build(task, "gru", d_model=8)
    batch = next(iter(loader(task, "train", 4)))
    some, all_of_them = task.predict(network, batch), network(batch.inputs)
    assert some.shape == (4 * 7, task.outputs) and all_of_them.shape[1] == 12
    torch.testing.assert_close(task.loss(some, batch).total, task.loss(all_of_them, batch).total)
    assert task.loss(some, batch).count == task.loss(all_of_them, batch).count == 28
    assert task.score(some, batch) == pytest.approx(task.score(all_of_them, batch))


@pytest.mark.parametrize("cost", [150.0, 600.0])
def test_a_token_that_is_next_to_impossible_costs_what_the_loss_says(cost):
    logits, batch = torch.tensor([[[cost, 0.0]]]), Batch(*torch.tensor([[[0]], [[1]], [[1]]]))
    for scorer, expected in ((perplexity(), math.exp(cost)), (bits(), cost / math.log(2))):
        scorer.update(*tokens_measured(logits, batch))
        assert float(scorer.compute()) == pytest.approx(expected, rel=1e-4)


def test_the_papers_windows_are_400_characters_and_80_words():
    inputs, target = task_by_name("characters").split("train")[5]
    assert len(inputs) == 400 and int((target != IGNORED).sum()) == 320
    inputs, target = task_by_name("words").split("train")[5]
    assert len(inputs) == 80 and int((target != IGNORED).sum()) == 40
