"""rtx: the interactive companion to the papers on recurrence and attention.

The bricks are in `rtx.nn`, the papers' models in `rtx.models`, the experiments in `rtx.tasks`.
"""

TYPE_CHECKING = False  # type checkers read it as True; the module `typing` would take time
if TYPE_CHECKING:
    from rtx.models import (
        AWDLSTM,
        HMRNN,
        HORNN,
        MCRNN,
        MODELS,
        RNN,
        TCN,
        CharacterTransformer,
        EncoderDecoder,
        FeedForwardAttention,
        Griffin,
        LanguageModel,
        RTransformer,
        Seq2Seq,
        Transformer,
        TransformerXL,
        rnnsearch,
    )
    from rtx.tasks import TASKS, build

__all__ = [
    "AWDLSTM",
    "HMRNN",
    "HORNN",
    "MCRNN",
    "MODELS",
    "RNN",
    "TASKS",
    "TCN",
    "CharacterTransformer",
    "EncoderDecoder",
    "FeedForwardAttention",
    "Griffin",
    "LanguageModel",
    "RTransformer",
    "Seq2Seq",
    "Transformer",
    "TransformerXL",
    "build",
    "rnnsearch",
]
__version__ = "0.1.0"

if not TYPE_CHECKING:  # a type checker would take any name for one that exists

    def __getattr__(name: str) -> object:
        """Import a model or a package when it is first used, because the `rtx` command should answer without torch."""
        from importlib import import_module

        if name in ("nn", "models", "tasks"):
            return import_module(f"rtx.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'rtx' has no attribute {name!r}")
        return getattr(import_module("rtx.tasks" if name in ("TASKS", "build") else "rtx.models"), name)


def __dir__() -> list[str]:
    """Return the public names, also of what is not imported yet."""
    return sorted({*globals(), *__all__, "nn", "models", "tasks"})
