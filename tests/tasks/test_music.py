"""Piano rolls: Nottingham's published counts and baseline, the chorales, and rolls that are none."""

import gzip

import nbformat
import numpy as np
import pytest
import torch
from music21 import chord, note, stream
from nbclient import NotebookClient
from pretty_midi import Instrument, PrettyMIDI
from pretty_midi import Note as MidiNote
from scipy.io import savemat

from rtx.tasks import task_by_name
from rtx.tasks.music import chorales, distinct, piano_roll_task, score_to_roll
from rtx.tasks.rolls import LOWEST, NOTES, Note, check_roll, marginal_nll, read_mat, read_notes, roll_of
from rtx.tasks.task import SPLITS, collate

PUBLISHED = {  # tunes and frames of training, validation and test
    "nottingham": [(694, 176_561), (173, 45_513), (170, 44_463)],
    "jsb": [(229, 13_807), (76, 4_602), (77, 4_725)],
    "piano": [(87, 75_911), (12, 8_540), (25, 19_036)],
    "muse": [(524, 245_202), (135, 82_755), (124, 64_339)],
}


def roll(frames: int = 4) -> np.ndarray:
    return np.eye(frames, NOTES, dtype=np.uint8)


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_set_has_the_published_pieces_and_frames(name, real_data):
    task = task_by_name(name)
    assert task.name == name and len(task.sha256()) == 64
    for split, (pieces, frames) in zip(SPLITS, PUBLISHED[name], strict=True):
        examples = task.split(split)
        assert len(examples) == pieces
        assert sum(len(e.inputs) + 1 for e in examples) == frames  # the last frame is not an input


def test_every_frame_but_the_first_is_predicted_from_those_before(real_data):
    cells = read_mat(real_data / "poly_music" / "Nottingham.mat")
    examples = task_by_name("nottingham").split("validation")
    for i in (0, 7, -1):
        frames = torch.from_numpy(cells["validation"][i]).float()
        torch.testing.assert_close(examples[i].inputs, frames[:-1])
        torch.testing.assert_close(examples[i].target, frames[1:])
    assert task_by_name("nottingham").sha256().startswith("d154f7ca")


def test_nottinghams_baseline_is_the_loss_of_the_frequencies_of_notes(real_data):
    task = task_by_name("nottingham")
    p = torch.cat([e.target for e in task.split("train")]).mean(0).double().clamp(1e-6, 1 - 1e-6)
    test = task.split("test")
    total = count = 0.0
    for start in range(0, len(test), 50):  # padded batches
        batch = collate(test[start : start + 50], task.per)
        score = task.loss(torch.logit(p).float().expand_as(batch.targets), batch)
        total, count = total + float(score.total), count + float(score.count)
    assert count == 44_463 - 170
    assert task.baseline() == pytest.approx(10.26, abs=0.005) == pytest.approx(total / count, abs=0.05)


def test_the_baseline_is_how_often_each_note_sounds():
    train, test = [roll(4), roll(6)], [roll(3)]
    counts = np.zeros(NOTES)
    counts[1:6] = [2, 2, 2, 1, 1]  # in the eight frames that are predicted
    p, expected = (counts + 0.5) / 9, 0.0
    for frame in test[0][1:]:
        expected -= sum(np.log(p[note] if frame[note] else 1 - p[note]) for note in range(NOTES))
    assert marginal_nll(train, test) == pytest.approx(expected / 2)
    task = piano_roll_task("small", lambda: {"train": train, "test": test})
    assert task.baseline() == pytest.approx(expected / 2)
    assert chorales().baseline() > 5


def test_chorales_are_split_by_piece_and_no_piece_is_in_two_splits():
    task = chorales()
    pieces = {split: [torch.cat([e.inputs, e.target[-1:]]) for e in task.split(split)] for split in SPLITS}
    sizes = [len(pieces[split]) for split in SPLITS]
    assert sum(sizes) > 300
    assert np.array(sizes) / sum(sizes) == pytest.approx([0.8, 0.1, 0.1], abs=0.01)

    def up_to_transposition(piece: torch.Tensor) -> tuple[int, bytes]:
        used = piece.any(0).nonzero().flatten()
        return len(piece), piece[:, used[0] : used[-1] + 1].contiguous().numpy().tobytes()

    keys = [up_to_transposition(piece) for split in SPLITS for piece in pieces[split]]
    assert len(set(keys)) == sum(sizes)
    assert all(piece[0].any() and piece[-1].any() for split in SPLITS for piece in pieces[split])


def test_a_score_becomes_a_frame_per_eighth_note():
    upper, lower = stream.Part(), stream.Part()
    upper.append(note.Rest(quarterLength=1))  # cut off: nothing sounds yet
    upper.append(note.Note("C5", quarterLength=1))
    upper.append(note.Note("D5", quarterLength=0.25))
    upper.append(note.Note("E5", quarterLength=0.25))  # between two frames
    upper.append(note.Note("F5", quarterLength=0.5))
    lower.append(note.Rest(quarterLength=1))
    lower.append(chord.Chord(["C3", "G3"], quarterLength=1.5))
    sounding = [(np.flatnonzero(frame) + LOWEST).tolist() for frame in score_to_roll(stream.Score([upper, lower]))]
    assert sounding == [[48, 55, 72], [48, 55, 72], [48, 55, 74], [77]]


def test_a_score_without_notes_of_the_88_keys_is_refused():
    for key in (-1, NOTES):
        with pytest.raises(ValueError, match=f"notes: .* got {LOWEST + key}$"):
            roll_of([Note(0, 0, 2), Note(key, 0, 2)])
    with pytest.raises(ValueError, match="notes: .* got none$"):
        roll_of([])
    for found, pitches in [("none", []), ("20", ["G#0"]), ("109", ["C5", "C#8"])]:
        score = stream.Score([stream.Part([note.Note(pitch, quarterLength=1) for pitch in pitches])])
        with pytest.raises(ValueError, match=f"score: .* got {found}$"):
            score_to_roll(score)


def test_one_of_each_set_of_transposed_pieces_is_kept_in_a_fixed_order():
    rng = np.random.default_rng(0)
    pieces = []
    for frames in rng.integers(5, 30, 20):
        piece = np.zeros((frames, NOTES), np.uint8)
        piece[:, 30:50] = rng.integers(0, 2, (frames, 20))
        pieces.append(piece)
    once = distinct(pieces)
    assert len(once) == 20 and [len(p) for p in once] != [len(p) for p in pieces]
    again = distinct([*reversed(pieces), *(np.roll(piece, 7, axis=1) for piece in pieces)])
    fewer = distinct(pieces[1:])
    assert all(map(np.array_equal, again, once)) and len(again) == 20
    assert all(map(np.array_equal, fewer, [p for p in once if p is not pieces[0]])) and len(fewer) == 19


def test_rolls_become_a_task_and_are_read_once_when_needed():
    reads = []
    given = {"train": [roll(), roll(6)], "test": [roll(3)]}
    task = piano_roll_task("mine", lambda: reads.append(1) or given)
    assert not reads
    assert [len(task.split(split)) for split in ("train", "test")] == [2, 1] and reads == [1]
    assert task.split("test")[0].inputs.dtype == torch.float32


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((5, 87)), r"got shape \(5, 87\)"),
        (np.zeros(88), r"got shape \(88,\)"),
        (roll(1), "two frames.* got 1"),
        (np.where(roll() == 1, 2, 0), "got 2"),
        (np.where(np.arange(88) == 3, np.nan, roll()), "got nan"),
        (np.full((2, 88), 0.5), "got 0.5"),
    ],
)
def test_a_wrong_roll_is_named(bad, message):
    with pytest.raises(ValueError, match=rf"^mine: .*{message}"):
        check_roll("mine", bad)


def cells(*rolls: np.ndarray) -> np.ndarray:
    array = np.empty((1, len(rolls)), object)
    array[0, :] = rolls
    return array


def test_a_mat_file_is_read_as_written_also_packed(tmp_path):
    written = {"traindata": cells(roll(), roll(5)), "validdata": cells(roll(2)), "testdata": cells(roll(3))}
    savemat(path := tmp_path / "mine.mat", written)
    (packed := tmp_path / "mine.mat.gz").write_bytes(gzip.compress(path.read_bytes()))
    for read in (read_mat(path), read_mat(packed)):
        assert [[len(r) for r in read[split]] for split in SPLITS] == [[4, 5], [2], [3]]
        np.testing.assert_array_equal(read["train"][1], roll(5))


@pytest.mark.parametrize("frame", [0.6, 0.3, 0.2, 0.1])
def test_notes_of_a_midi_file_that_start_between_two_frames_keep_their_length(tmp_path, frame):
    song = PrettyMIDI(resolution=480, initial_tempo=100)
    song.instruments = [Instrument(0)]
    song.instruments[0].notes = [MidiNote(80, 60 + i, (i + 0.5) * frame, (i + 1.5) * frame) for i in range(8)]
    song.write(str(tmp_path / "late.mid"))
    assert read_notes(tmp_path / "late.mid", frame) == [Note(39 + i, i + 1, i + 2) for i in range(8)]


@pytest.mark.slow
def test_music21_leaves_a_notebooks_figures_as_they_are():
    """By itself it sets another format, in a thread of its own a second after it is imported."""
    told = "from matplotlib_inline.config import InlineBackend; print(*InlineBackend.instance().figure_formats)"
    parsed = "from rtx.tasks import music; music.distinct = lambda _: [numpy.eye(2, 88, dtype='u1')]"
    cells = [
        f"import numpy; {parsed}; music._parse_chorales()",  # parses no score
        f"from music21 import ipython21; ipython21.t.join(); {told}",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    NotebookClient(notebook, kernel_name="python3").execute()
    assert notebook.cells[1].outputs[0].text == "png\n"
