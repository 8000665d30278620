"""A Sphinx extension: leave out what jupyter-book puts into every page for running code on another server."""

from typing import Any

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Have every page looked at, after all others have added to it."""
    app.connect("html-page-context", _leave_out, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _leave_out(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: object) -> None:
    scripts = context["script_files"]
    context["script_files"] = [one for one in scripts if "thebe" not in f"{one}{one.attributes.get('body')}".lower()]
