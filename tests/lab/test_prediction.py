"""The prediction explorer tells what a model expected and what came; the player holds the whole tune."""

import base64

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from rtx.lab import explore
from rtx.lab.explore import Explorer, Player
from rtx.lab.explore.music import next_frame_logits, note_name
from rtx.lab.plots import COLOURS
from rtx.models import RTransformer
from rtx.tasks import SequenceModel

VIEW = "application/vnd.jupyter.widget-view+json"


def small_model(dropout: float = 0.0) -> SequenceModel:
    torch.manual_seed(0)
    return SequenceModel(RTransformer(16, 1, 2, 3, dropout=dropout), 88, 88, "step")


def tune(frames: int = 40) -> np.ndarray:
    """Four held voices that move at times, as in a chorale."""
    voices = [36 + 7 * i + np.arange(frames) // (i + 2) % 5 for i in range(4)]
    roll = np.zeros((frames, 88), np.uint8)
    for voice in voices:
        roll[np.arange(frames), voice] = 1
    return roll


MODEL, TUNE = small_model(), tune()


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    """One for several tests: to draw takes longer than to test."""
    return explore.prediction(MODEL, TUNE)


def test_frames_are_predicted_from_those_before_them() -> None:
    changed = TUNE.copy()
    changed[20] = 0
    logits, after = next_frame_logits(MODEL, TUNE), next_frame_logits(MODEL, changed)
    assert logits.shape == (39, 88)
    # row 19 predicts the frame of index 20, the first that may not know the change
    torch.testing.assert_close(logits[:20], after[:20])
    assert not torch.allclose(logits[20], after[20])


@pytest.mark.parametrize(("frame", "temperature"), [(2, 1.0), (17, 0.5), (40, 2.0)])
def test_the_sentence_tells_the_notes_that_came_and_the_cost(
    explorer: Explorer, frame: int, temperature: float
) -> None:
    text = explorer.set(frame=frame, temperature=temperature)
    with torch.no_grad():
        logits = MODEL(torch.from_numpy(TUNE[: frame - 1]).float()[None])[0, -1] / temperature
    came = torch.from_numpy(TUNE[frame - 1]).float()
    cost = binary_cross_entropy_with_logits(logits, came, reduction="none")
    notes = [f"{note_name(21 + i)} ({logits[i].sigmoid():.2f})" for i in came.nonzero().flatten().tolist()]
    assert text.startswith(f"Frame {frame} brought {', '.join(notes)}; it costs {cost.sum():.2f} nats, ")
    assert f"of which {cost.max():.2f} because " in text


def test_the_dearest_note_may_be_one_that_did_not_come() -> None:
    model = small_model()
    with torch.no_grad():
        model.head.bias[60 - 21] = 50.0
    text = explore.prediction(model, TUNE).text
    assert text.endswith("because C4 did not come.")


def test_the_chosen_frame_and_its_notes_are_drawn_where_they_are(explorer: Explorer) -> None:
    left, right = explorer.figure.axes
    explorer.set(frame=30, temperature=1.0)
    box, future = left.patches
    assert (box.get_x(), box.get_width()) == (29.5, 1) and future.get_x() == 30.5
    assert left.get_xlim()[0] < 29.5 and left.get_xlim()[1] > 30.5
    ends = np.array([segment[1] for segment in right.collections[0].get_segments()])
    np.testing.assert_allclose(ends[:, 0], next_frame_logits(MODEL, TUNE)[28].sigmoid())
    np.testing.assert_array_equal(ends[:, 1], np.arange(21, 109))
    came = np.flatnonzero(TUNE[29])
    assert right.lines[0].get_ydata().tolist() == (21 + came).tolist()
    assert {tuple(colour) for colour in right.collections[0].get_color()[came]} == {(*COLOURS[1], 1.0)}


def test_short_tunes_and_silence_can_be_explored() -> None:
    assert explore.prediction(MODEL, tune(2)).set(frame=2).startswith("Frame 2 brought ")
    explorer = explore.prediction(MODEL, np.zeros((33, 88)))
    assert "Frame 33 brought silence; " in explorer.set(frame=33)
    assert explorer.figure.axes[0].get_ylim() == (20.5, 108.5)  # the keyboard, and no note below it


def test_dropout_is_off_and_the_model_stays_in_its_mode() -> None:
    model = small_model(dropout=0.5).train()
    torch.testing.assert_close(next_frame_logits(model, TUNE), next_frame_logits(model, TUNE))
    assert model.training


def test_a_tensor_and_a_model_in_double_precision_will_do() -> None:
    text = explore.prediction(small_model().double(), torch.from_numpy(TUNE).double()).set(frame=12)
    assert text.startswith("Frame 12 brought ")


def test_notes_are_named_as_on_the_piano() -> None:
    assert [note_name(midi) for midi in (21, 60, 61, 71, 108)] == ["A0", "C4", "C♯4", "B4", "C8"]


@pytest.mark.parametrize(
    ("roll", "message"), [(TUNE[:, :80], r"roll: .*\(40, 80\)"), (TUNE[:1], "roll: "), (TUNE / 2, "roll: .* 0.5")]
)
def test_what_is_no_roll_is_named(roll: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore.prediction(MODEL, roll)
    with pytest.raises(ValueError, match=message):
        Player(roll)


def test_a_model_that_diverged_is_named() -> None:
    model = small_model()
    with torch.no_grad():
        model.head.bias[0] = torch.nan
    with pytest.raises(ValueError, match="logits of the model: .* NaN"):
        explore.prediction(model, TUNE)


# The player. What it draws and plays is tested in a browser.


def test_the_state_holds_the_tune_and_a_page_without_widgets_gets_a_picture_and_a_sentence() -> None:
    player = Player(torch.from_numpy(TUNE), "a tune", 0.25)
    state = player.get_state()
    assert len(state["notes"]) == 40 * 11
    bits = np.unpackbits(np.frombuffer(state["notes"], np.uint8).reshape(40, 11), axis=1)
    np.testing.assert_array_equal(bits, TUNE)
    assert (state["title"], state["frame_seconds"], state["lowest"]) == ("a tune", 0.25, 21)
    bundle, facts = player._repr_mimebundle_()
    assert bundle[VIEW]["model_id"] == player.model_id
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert "a tune: 40 frames" in bundle["text/plain"]
    assert facts["image/png"] == {"width": 720}
