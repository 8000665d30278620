"""`rtx translate` needs nothing but a checkpoint; `rtx evaluate` scores any checkpoint again."""

import re
from io import BytesIO
from types import SimpleNamespace

import pytest
import torch

import rtx
from rtx.cli.translate import translate_
from rtx.tasks import task_by_name
from rtx.tasks.pairs import write
from rtx.tasks.task import Task, collate
from rtx.training.checkpoint import save_checkpoint
from rtx.training.evaluate import evaluate

SIZES = {"d_model": 8, "recurrent": "gru"}
LINES = ["Montag, 3. Mai 1999", "", "01.02.50", "1. Januar 2000, 14:07", "5. März 2019"]


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A checkpoint of an untrained translator of dates, on fewer pairs than usual; and its task."""
    path = tmp_path_factory.mktemp("run") / "best.safetensors"
    task = task_by_name("dates", size=600)
    torch.manual_seed(0)
    network = rtx.build(task, "rnnsearch", **SIZES)
    texts = [text.to_json() for text in task.texts]
    save_checkpoint(path, network, "dates", "rnnsearch", SIZES, texts=texts, task_arguments={"size": 600})
    return SimpleNamespace(path=path, task=task, network=network.eval())


def test_lines_go_in_and_come_out_in_order_whatever_the_block(command, translator, monkeypatch):
    expected = write(translator.network, translator.task.texts, LINES, 3)
    assert len(set(expected)) > 2 and expected[1] == ""
    for block in (1, 2, 99):
        monkeypatch.setattr("rtx.cli.translate.BLOCK", block)
        done = command("translate", translator.path, "--beam", 3, text="\n".join(LINES) + "\n")
        assert done.stdout.split("\n") == [*expected, ""], done.stderr


def test_nothing_but_the_checkpoint_is_needed(command, translator, monkeypatch, tmp_path):
    monkeypatch.setenv("RTX_CACHE", str(tmp_path))
    monkeypatch.setenv("RTX_DATA", str(tmp_path))
    monkeypatch.setattr("rtx.tasks.translation.date_pair", None)
    monkeypatch.setattr("rtx.tasks.subwords.Subwords._tokenizer", None)
    assert command("translate", translator.path, text=LINES[0]).returncode == 0
    assert not [*tmp_path.iterdir()]


def test_a_byte_order_mark_is_no_text(command, translator):
    with_mark, without = (command("translate", translator.path, text=mark + LINES[0]) for mark in ("\ufeff", ""))
    assert with_mark.stdout == without.stdout != "\n"


def test_evaluate_is_the_metric_and_what_the_task_measures_of_texts(command, translator):
    scores = evaluate(translator.path, "validation", 40)
    batch = collate(translator.task.split("validation")[:40], "pair")
    with torch.no_grad():
        perplexity = translator.task.score(translator.task.predict(translator.network, batch), batch)
    assert scores["perplexity per token"] == pytest.approx(perplexity, rel=1e-5)
    assert {k: scores[k] for k in ("BLEU", "signature")}.items() <= translator.task.examine(
        translator.network, "validation", 40
    ).items()
    whole = evaluate(translator.path, "validation")
    out = command("evaluate", translator.path, "--split", "validation").stdout
    assert f"perplexity per token  {whole['perplexity per token']:.4f}" in out
    assert f"signature  {whole['signature']}" in out


def test_evaluate_scores_tasks_of_numbers_too(tmp_path):
    path, task = tmp_path / "digits.safetensors", task_by_name("digits")
    network = rtx.build("digits", "gru", d_model=4).eval()
    save_checkpoint(path, network, "digits", "gru", {"d_model": 4})
    batch = collate(task.split("test"), task.per)
    with torch.no_grad():
        expected = task.score(task.predict(network, batch), batch)
    assert evaluate(path) == {task.metric: pytest.approx(expected)}


def test_a_gpu_is_used_where_there_is_one(command, translator, monkeypatch):
    moved = []

    def move(module, *to, **_):
        moved.extend([str(to[0])] * any(True for _ in module.parameters()))  # a metric has none
        return module

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.nn.Module, "to", move)
    for verb in ("translate", "evaluate"):
        assert command(verb, translator.path, text=LINES[0]).returncode == 0
    assert [one for one in moved if one == "cuda"] == ["cuda"] * 2


def test_evaluate_reads_batches_where_the_model_is(tmp_path, monkeypatch):
    def predict(task, network, batch):
        raise LookupError(*(part.device.type for part in (next(network.parameters()), *batch)))

    path = tmp_path / "digits.safetensors"
    save_checkpoint(path, rtx.build("digits", "gru", d_model=4), "digits", "gru", {"d_model": 4})
    monkeypatch.setattr(Task, "predict", predict)
    with pytest.raises(LookupError) as read:
        evaluate(path, device="meta")
    assert read.value.args == ("meta",) * 4


def test_evaluate_refuses_other_data_and_a_model_that_predicts_nan(tmp_path):
    path, network = tmp_path / "digits.safetensors", rtx.build("digits", "gru", d_model=4)
    trained, here = "0123456789ab" + 52 * "0", task_by_name("digits").sha256()
    save_checkpoint(path, network, "digits", "gru", {"d_model": 4}, data_sha256=trained)
    with pytest.raises(ValueError, match=rf"digits.*0123456789ab.*{here[:12]}"):
        evaluate(path)
    torch.nn.init.constant_(next(network.parameters()), float("nan"))
    save_checkpoint(path, network, "digits", "gru", {"d_model": 4}, data_sha256=here)
    with pytest.raises(ValueError, match=r"digits.safetensors: .* nan .* test split of digits"):
        evaluate(path)


def test_a_carried_state_is_carried_in_evaluation_too(tmp_path):
    path = tmp_path / "c.safetensors"
    arguments, sizes = {"context": 0, "scored": 50}, {"d_model": 4}
    task = task_by_name("characters", **arguments)
    torch.manual_seed(0)
    network = rtx.build(task, "gru", **sizes).eval()
    texts = [text.to_json() for text in task.texts]
    found = {}
    for carry in (True, False):
        save_checkpoint(path, network, "characters", "gru", sizes, texts=texts, task_arguments=arguments, carry=carry)
        found[carry] = evaluate(path, "test", 4)[task.metric]
    pieces = task.split("test")[:4]
    whole = collate([type(pieces[0])(*map(torch.cat, zip(*pieces, strict=True)))], "token")
    with torch.no_grad():
        assert found[True] == pytest.approx(task.score(network(whole.inputs), whole), rel=1e-4)
    assert found[True] != found[False]


def test_what_cannot_be_done_is_refused_in_a_line(command, translator, tmp_path, monkeypatch):
    sums = tmp_path / "sums.safetensors"
    save_checkpoint(sums, rtx.build("add", "gru", d_model=4), "add", "gru", {"d_model": 4})
    other = tmp_path / "other.safetensors"
    texts = [text.to_json() for text in task_by_name("dates", size=900).texts]
    save_checkpoint(other, translator.network, "dates", "rnnsearch", SIZES, texts=texts, task_arguments={"size": 600})
    for words, message in [
        (("translate", sums), "sums.safetensors: expected a model of rnnsearch or encoder-decoder, got one of gru"),
        (("translate", translator.path, "--beam", 300), "beam: expected at most the 250 tokens, got 300"),
        (("evaluate", translator.path, "--split", "tset"), "split: 'tset' is unknown, .*did you mean 'test'"),
        (("evaluate", other), "other.safetensors: its tokens are not those of dates here"),
    ]:
        done = command(*words, text=LINES[0])
        assert done.returncode == 2 and re.search(message, done.stderr)
    for verb in ("translate", "evaluate"):
        assert command(verb, tmp_path / "none").returncode == command(verb, tmp_path).returncode == 2
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(b"a\n\xff\n")))
    with pytest.raises(ValueError, match="0xff"):
        translate_(translator.path)
