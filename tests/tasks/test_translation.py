"""Pairs of sentences and their translation: data, splits, loss and BLEU."""

import gzip
import math

import pytest
import sacrebleu
import torch

import rtx
from rtx.nn.search import Hypotheses
from rtx.tasks import task_by_name
from rtx.tasks.pairs import pair_task, read_pairs, write
from rtx.tasks.subwords import BEGIN, END, UNKNOWN
from rtx.tasks.task import SPLITS, collate
from rtx.tasks.translation import WAYS, bleu, date_pair, dates, multi30k

TEXTS = [
    ("ein Hund läuft", "a dog runs"),
    ("zwei Hunde laufen über die Wiese .", "two dogs run across the meadow ."),
    ("ein Kind", "a child"),
]


def texts(task, example) -> tuple[str, str]:
    source, target = task.texts
    return source.decode(example.inputs.tolist()), target.decode(example.target.tolist())


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="module")
def small_dates():
    return dates(size=600)


def test_a_date_in_every_way():
    assert date_pair(0, 14 * 60 + 7, WAYS.index(("full", "short"))) == (
        "Sonntag, 1. Januar 1950, 14:07",
        "Sunday, January 1, 1950, 2:07 PM",
    )
    assert date_pair(31, 0, WAYS.index(("short", ""))) == ("01.02.50", "2/1/50")
    pairs = [date_pair(12_345, 1000, way) for way in range(len(WAYS))]
    assert len({source for source, _ in pairs}) == len(WAYS) == 15
    assert len({target for _, target in pairs}) == 15


def test_dates_are_the_same_every_time_and_in_one_split_only(small_dates):
    pairs = {split: [texts(small_dates, e) for e in small_dates.split(split)] for split in SPLITS}
    assert [len(pairs[split]) for split in SPLITS] == [600, 500, 500]
    sources = [source for split in SPLITS for source, _ in pairs[split]]
    assert len(set(sources)) == 1600
    again = dates(size=600)
    assert again.sha256() == small_dates.sha256() != dates(size=600, seed=1).sha256()
    for one, two in zip(small_dates.split("train"), again.split("train"), strict=True):
        assert torch.equal(one.inputs, two.inputs) and torch.equal(one.target, two.target)
    larger = dates(size=700)  # the held-out pairs do not depend on the size
    assert [texts(larger, e) for e in larger.split("test")] == pairs["test"]


def test_a_source_ends_and_a_target_begins_and_ends(small_dates):
    for example in small_dates.split("test")[:20]:
        assert example.inputs[-1] == END and (example.inputs[:-1] > UNKNOWN).all()
        assert example.target[0] == BEGIN and example.target[-1] == END and (example.target[1:-1] > UNKNOWN).all()
    assert (small_dates.inputs, small_dates.outputs) == (250, 250)


def test_the_validation_side_is_never_seen_by_the_subwords(monkeypatch, tmp_path):
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    splits = {"train": TEXTS, "validation": [("ein Hund %", "a % dog")], "test": [("ein Hund €", "a € dog")]}
    task = pair_task("tiny", lambda: splits, bleu, 30)
    for split in ("validation", "test"):
        assert UNKNOWN in task.split(split)[0].inputs and UNKNOWN in task.split(split)[0].target
    assert not any(UNKNOWN in e.inputs or UNKNOWN in e.target for e in task.split("train"))


def test_the_loss_is_the_cross_entropy_of_what_follows_each_token(small_dates):
    batch = collate(small_dates.split("train")[:5], "pair")
    logits = torch.randn(5, batch.targets.shape[1] - 1, 250, generator=seeded())
    expected, count = 0.0, 0
    for row, example in zip(logits.double().log_softmax(-1), small_dates.split("train")[:5], strict=True):
        following = example.target[1:]
        expected -= sum(float(row[i, token]) for i, token in enumerate(following))
        count += len(following)
    found = small_dates.loss(logits, batch)
    assert found.count == count
    assert float(found.total) == pytest.approx(expected, rel=1e-5)
    assert small_dates.score(logits, batch) == pytest.approx(math.exp(expected / count), rel=1e-4)


def test_padding_has_no_effect_on_predictions(small_dates):
    torch.manual_seed(0)
    model = rtx.build(small_dates, "rnnsearch", d_model=8).double()
    batch = collate(small_dates.split("train")[:5], "pair")
    padded = torch.arange(batch.inputs.shape[1]) >= batch.lengths[:, None]
    spoilt = batch._replace(inputs=batch.inputs.masked_fill(padded, 77))
    assert padded.any()
    one, two = (small_dates.loss(small_dates.predict(model, b), b).total for b in (batch, spoilt))
    each = [collate([e], "pair") for e in small_dates.split("train")[:5]]
    alone = sum(small_dates.loss(small_dates.predict(model, b), b).total for b in each)
    assert one == two
    torch.testing.assert_close(one, alone)


def test_bleu_is_sacrebleus_of_the_texts():
    written = ["a dog runs", "two dogs run over a meadow .", "a child , alone"]
    references = [target for _, target in TEXTS]
    found = bleu(TEXTS, written)
    assert found["BLEU"] == sacrebleu.corpus_bleu(written, [references]).score
    assert 0 < found["BLEU"] < 100 and next(iter(found)) == "BLEU"
    assert "tok:13a" in found["signature"] and "case:mixed" in found["signature"]
    split_off = [text.replace("runs", "runs.") for text in written]
    assert (
        bleu(TEXTS, split_off, "none")["BLEU"] == sacrebleu.corpus_bleu(split_off, [references], tokenize="none").score
    )
    assert bleu(TEXTS, split_off)["BLEU"] > bleu(TEXTS, split_off, "none")["BLEU"]
    assert "tok:none" in bleu(TEXTS, written, "none")["signature"]


def test_bleu_by_length_is_the_bleu_of_the_sources_of_that_length():
    pairs = [(" ".join(["w"] * n), f"a b c d e {n}") for n in (1, 20, 21, 40, 41, 61, 62, 200)]
    written = [target if i % 2 else "a b c d e f" for i, (_, target) in enumerate(pairs)]
    found = bleu(pairs, written)
    names = ["BLEU, 1 to 20 words", "BLEU, 21 to 40 words", "BLEU, 41 to 61 words", "BLEU, over 61 words"]
    for i, name in enumerate(names):
        rows = slice(2 * i, 2 * i + 2)
        assert found[name] == sacrebleu.corpus_bleu(written[rows], [[t for _, t in pairs[rows]]]).score
    assert {*bleu(pairs[:2], written[:2])} == {"BLEU", names[0], "signature"}


def test_the_baseline_is_the_score_of_the_copied_source(small_dates):
    pairs = [texts(small_dates, e) for e in small_dates.split("test")]
    copied = sacrebleu.corpus_bleu([source for source, _ in pairs], [[target for _, target in pairs]]).score
    assert small_dates.baseline() == pytest.approx(copied) and 10 < copied < 30


def test_the_test_score_is_the_bleu_of_what_a_model_writes(small_dates, monkeypatch):
    pairs = [texts(small_dates, e) for e in small_dates.split("test")[:20]]
    written = [target if i % 3 else source for i, (source, target) in enumerate(pairs)]
    monkeypatch.setattr("rtx.tasks.pairs.write", lambda model, texts, sources, *how: written[: len(sources)])
    scores = small_dates.examine(torch.nn.Identity(), "test", 20)
    expected = sacrebleu.corpus_bleu(written, [[target for _, target in pairs]]).score
    assert next(iter(scores)) == "BLEU" and 20 < scores["BLEU"] == expected < 99


def test_texts_are_written_in_the_order_of_their_sources(small_dates):
    torch.manual_seed(0)
    model = rtx.build(small_dates, "rnnsearch", d_model=8).eval()
    sources = [texts(small_dates, e)[0] for e in small_dates.split("test")[:20]]
    together = write(model, small_dates.texts, [*sources, "", "  "], beam=2)
    assert together == [*(write(model, small_dates.texts, [s], 2)[0] for s in sources), "", ""]
    assert all(len(text.split()) <= 3 for text in write(model, small_dates.texts, sources, 2, longest=3))
    assert len(set(together)) > 3


@pytest.mark.parametrize("wrong", [{"beam": 0}, {"beam": 1000}, {"longest": 0}, {"longest": 2.5}])
def test_a_wrong_width_or_length_of_a_search_is_refused(small_dates, wrong):
    model = rtx.build(small_dates, "rnnsearch", d_model=8).eval()
    (value,) = wrong.values()
    with pytest.raises(ValueError, match=f"(beam|length): .* got {value}"):
        write(model, small_dates.texts, ["1. Mai 2001"], **wrong)


def test_multi30k_has_the_published_counts(real_data):
    task = multi30k(vocabulary=300)
    assert [len(task.split(split)) for split in SPLITS] == [29_000, 1_014, 1_000]
    assert texts(task, task.split("train")[3]) == (
        "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
        "A man in a blue shirt is standing on a ladder cleaning a window.",
    )
    assert 0 < task.baseline() < 1
    assert task.sha256().startswith("726e39b2")


@pytest.mark.slow
def test_iwslt14_has_the_counts_of_its_splits_and_says_that_training_is_a_part(real_data):
    task = task_by_name("iwslt14-mixer", vocabulary=300)  # the 49,774 pairs of training take seconds to encode
    assert [len(task.split(split)) for split in ("validation", "test")] == [6_969, 6_750]
    assert task.name == "iwslt14-mixer" and "49,774 of 160,239" in task.metric
    source, _ = texts(task, task.split("test")[0])
    assert source.islower() and source.endswith(" .")


def test_lines_end_at_newlines_alone_and_files_may_be_gzipped(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress("eins\u2028zwei \r\ndrei\x85\n".encode("utf-16")))
    (tmp_path / "b").write_bytes(b"one two\nthree")
    assert read_pairs(tmp_path / "a.gz", tmp_path / "b") == [("eins zwei", "one two"), ("drei", "three")]
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\n")[:-6])
    with pytest.raises(ValueError, match="a.gz: corrupt or truncated gzip file"):
        read_pairs(tmp_path / "a.gz", tmp_path / "b")


def test_a_written_text_may_have_twice_the_tokens_of_its_source_plus_ten(small_dates):
    class Asked(torch.nn.Linear):
        def translate(self, source, lengths, *, length, **how):
            asked.append((int(lengths[0]), length))
            return Hypotheses(source[:, None], torch.zeros(1, 1), lengths[:, None])

    asked: list[tuple[int, int]] = []
    sources = [texts(small_dates, example)[0] for example in small_dates.split("test")[:20]]
    for source in sources:
        write(Asked(1, 1), small_dates.texts, [source], beam=1)
    assert asked == [(n, 2 * 8 * math.ceil((n - 1) / 8) + 10) for n, _ in asked] and len(set(asked)) > 3
