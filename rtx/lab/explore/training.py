"""The training lab: choose a task, a model and its hyper-parameters, and watch it learn beside the notebook."""

import base64
import threading
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from rtx.lab import background
from rtx.lab.choice import Choice, offered, rows
from rtx.lab.explore.access import Access, status
from rtx.lab.explore.cells import free_earlier
from rtx.lab.explore.explorer import picture_layout
from rtx.lab.explore.saving import html_page, save
from rtx.lab.explore.training_picture import TrainingPicture
from rtx.lab.explore.training_table import table
from rtx.lab.look import Look
from rtx.lab.training_run import TrainingRun
from rtx.nn.validate import check_choice

OWNER = "training lab"
SETTINGS = ("learning_rate", "batch_size", "epochs")
MOST = 6  # runs side by side
TRY = "train one model, change one number, and train again: which of the two is better after as many updates?"


class TrainingLab:
    """Start, pause, resume and stop the training of a recipe's row; the kernel stays free. Runs are kept side by side.

    A lab that is made again, as when its cell is run again, ends the training that the one before had begun.

    Args:
        task: one of `rtx.lab.choice.offered`, at first.
        model: a row of its recipe, at first; the first one if not given.
        changes: settings or arguments of the model that differ from the recipe's, at first.

    Raises:
        ValueError: if there is no such task or row.
    """

    def __init__(self, task: str = "digits", model: str | None = None, **changes: Any) -> None:
        background.end(OWNER, seconds=1.0)
        check_choice("task", task, offered())
        self.runs: list[tuple[Choice, TrainingRun]] = []
        self.picture = TrainingPicture()
        self._drawing = threading.Lock()
        self.task = widgets.Dropdown(options=list(offered()), value=task, description="task")
        self.model = widgets.Dropdown(description="model")
        self.seed = widgets.BoundedIntText(0, 0, 2**31 - 1, description="seed", layout=widgets.Layout(width="130px"))
        self.fields: dict[str, Any] = {}
        self.form = widgets.HBox(layout=widgets.Layout(flex_flow="row wrap"))
        self.start, self.pause, self.stop, self.clear = (
            widgets.Button(description=name, tooltip=tip, layout=widgets.Layout(width="110px"))
            for name, tip in (
                ("Start", "train with these settings"),
                ("Pause", "wait after this update, or go on"),
                ("Stop", "end this training for good"),
                ("Clear", "remove the runs that have ended"),
            )
        )
        self.image = widgets.Image(format="png", layout=picture_layout("1050px"))
        self.status, self.table = widgets.HTML(), widgets.HTML()
        self._connect()
        self._choose_task(model)
        for name, value in changes.items():
            self.fields[check_choice("setting", name, self.fields)].value = value
        buttons = widgets.HBox([self.start, self.pause, self.stop, self.clear])
        top = widgets.HBox([self.task, self.model, self.seed])
        hint = widgets.HTML(f"<i>Try: {escape(TRY)}</i>")
        self.widget = widgets.VBox([top, self.form, buttons, self.status, self.image, self.table, hint, Access()])
        free_earlier(self, self.widget)
        self.show()

    @property
    def choice(self) -> Choice:
        """What the controls say: the recipe's values where they are as it has them."""
        recipe, scale = offered()[self.task.value]
        usual = _values(Choice(recipe, self.model.value, scale))
        changed = {name: one.value for name, one in self.fields.items() if one.value != usual[name]}
        return Choice(recipe, self.model.value, scale, changed, self.seed.value)

    @property
    def run(self) -> TrainingRun | None:
        """The newest run."""
        return self.runs[-1][1] if self.runs else None

    def train(self) -> "TrainingLab":
        """Press Start, and wait until the training has ended; interrupting the cell stops it.

        If the settings are refused, nothing begins, and the status says why.
        """
        before = self.run
        self._begin()
        if self.run is not None and self.run is not before:
            self.run.background.wait()
        return self

    def show(self, seen: Look | None = None) -> None:
        """Draw everything as it stands; what was seen inside the model stays, if nothing newer is given.

        A run that was stopped before its first update is forgotten.
        """
        with self._drawing:
            self.runs = [one for one in self.runs if one[1].history.losses or one[1].background.state != "stopped"]
            same = [(choice, run) for choice, run in self.runs if choice.recipe == self.runs[-1][0].recipe]
            run, task = self.run, self.run and self.run.task
            histories, metric = [one.history for _, one in same], task.metric if task else "metric"
            self.image.value = self.picture.show(histories, metric, seen)
            self.table.value = table(same) if same else ""
            self._tell(run)

    def save(self, path: str | Path) -> Path:
        """Write what is seen now: the picture (.png, .svg), or a page with the picture and the table (.html).

        Raises:
            ValueError: if `path` has another ending.
            OSError: if it cannot be written; what was there before stays.
        """
        source = f"data:image/png;base64,{base64.b64encode(self.image.value).decode()}"
        body = f'<img src="{source}" alt="losses, scores, and a look inside">\n{self.status.value}\n{self.table.value}'
        with self._drawing:
            return save(path, self.picture.figure, lambda: html_page("Training lab", body))

    def _tell(self, run: TrainingRun | None) -> None:
        state = run.background.state if run else "new"
        self.status.value = status(_sentence(run), seen=True)
        self.start.disabled = state == "running"
        self.pause.disabled = self.stop.disabled = state not in ("running", "paused")
        self.pause.description = "Resume" if state == "paused" else "Pause"
        self.clear.disabled = not self.runs or state in ("running", "paused")

    def _connect(self) -> None:
        self.task.observe(lambda _: self._choose_task(), "value")
        self.model.observe(lambda _: self._choose_model(), "value")
        self.start.on_click(lambda _: None if self.start.disabled else self._begin())  # a late click, of several
        self.pause.on_click(lambda _: self._pause())
        self.stop.on_click(lambda _: self.run and self.run.background.stop(seconds=1.0))
        self.clear.on_click(lambda _: self._clear())

    def _choose_task(self, model: str | None = None) -> None:
        names = rows(*offered()[self.task.value])
        chosen = check_choice("model", model or names[0], names)
        self.model.options = names
        self.model.value = chosen
        self._choose_model()

    def _choose_model(self) -> None:
        if self.model.value is None:  # while its options change
            return
        recipe, scale = offered()[self.task.value]
        self.fields = {
            name: _field(name, value) for name, value in _values(Choice(recipe, self.model.value, scale)).items()
        }
        self.form.children = list(self.fields.values())

    def _begin(self) -> None:
        choice = self.choice
        try:
            plan = choice.plan()
        except ValueError as error:
            self.status.value = status(background.sentence(error), seen=True)
            return
        run = TrainingRun(plan, choice.seed, self._watch, OWNER)
        with self._drawing:
            self.runs = [*self.runs, (choice, run)][-MOST:]
        run.background.start()
        self.show()

    def _pause(self) -> None:
        if self.run is not None:
            paused = self.run.background.state == "paused"
            (self.run.background.resume if paused else self.run.background.pause)()

    def _clear(self) -> None:
        self.runs = []
        self.show()

    def _watch(self) -> None:
        """In the thread that trains: nobody else may look into a model that is learning."""
        if self.run is not None:
            self.run.score_probe()
            self.show(self.run.look())

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        still = {
            "image/png": base64.b64encode(self.image.value).decode(),
            "text/plain": f"[training lab: {TRY}]",
        }
        return self.widget._repr_mimebundle_() | still, {"image/png": {"width": 1050}}


def training(task: str = "digits", model: str | None = None, **changes: Any) -> TrainingLab:
    """The training lab; arguments and errors are those of `TrainingLab`."""
    return TrainingLab(task, model, **changes)


def _values(choice: Choice) -> dict[str, Any]:
    """What the form holds for a row: the settings it shows, and all of the model's arguments that the recipe gives."""
    plan = choice.plan()
    return {name: getattr(plan.settings, name) for name in SETTINGS} | plan.hyperparameters


def _field(name: str, value: Any) -> Any:
    """A control for a setting, of the kind of its value."""
    kinds = {bool: widgets.Checkbox, int: widgets.IntText, float: widgets.FloatText, str: widgets.Text}
    width = widgets.Layout(width="200px" if name == "learning_rate" else "160px")
    return kinds[type(value)](value, description=name, style={"description_width": "initial"}, layout=width)


def _sentence(run: TrainingRun | None) -> str:
    if run is None:
        return "Nothing has been trained yet."
    state, history = run.background.state, run.history
    if state == "failed":
        return f"The training failed: {run.background.error}."
    if not history.losses:
        return f"{state.capitalize()}: reading the data." if state == "running" else f"{state.capitalize()}."
    done = f"update {len(history.losses):,} of {run.steps:,}, loss {history.losses[-1]:.3f}"
    return f"{state.capitalize()}: {done}, {history.seconds[-1]:.1f} s of learning."
