"""What makes training faster where the machine can: `torch.compile`, another library for products."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback
from torch import nn

from rtx.nn.kernels.precision import AS_EXACT, general_setting, product_error

log = logging.getLogger(__name__)


def compile_model(model: nn.Module, device: torch.device) -> bool:
    """Have a model compiled at its first call, in place; or say why it cannot be, and leave it as it is."""
    from torch._dynamo.exc import TorchDynamoException  # takes seconds to import

    try:
        torch.compile(lambda x: x.sin() + 1)(torch.zeros(4, device=device))  # the compiler is only looked for when used
    except (TorchDynamoException, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split("\n\n")[0].split())  # advice follows
        log.warning("--compile: this machine has no working compiler (%s); training goes on without", reason)
        return False
    model.compile()
    if hasattr(model, "read"):  # how a text is carried on
        model.read = torch.compile(model.read)  # type: ignore[arg-type, assignment]
    return True


@contextmanager
def fast_products(wanted: bool, device: torch.device | str = "cpu") -> Iterator[None]:
    """Within it, float32 products at torch's setting "medium", if they are as exact there; or say that they are not.

    On some CPUs "medium" only means another library, oneDNN, with the same sums; on those with units for bfloat16, and
    on GPUs, it means fewer digits, and is declined. Time has no say in it, so that a run and its repetition compute
    the same. Settings that were chosen for devices stay as they are.

    Args:
        wanted: whether at all.
        device: where the products will be.
    """
    before = general_setting() if wanted else None
    if before is not None:
        plain, medium = (product_error(setting, device) for setting in ("highest", "medium"))
        if medium <= AS_EXACT * plain:
            torch.set_float32_matmul_precision("medium")
        else:
            log.warning("--fast-matmul: its error here is %.0e, not %.0e; training goes on without", medium, plain)
    elif wanted:
        log.warning("--fast-matmul: torch was given a setting of products by device; training goes on with that")
    try:
        yield
    finally:
        if before is not None:
            torch.set_float32_matmul_precision(before)


class FastProducts(Callback):
    """Has a run compute within `fast_products`, on the device that its trainer has chosen.

    Args:
        run: what ends it, with the run's test, too.
    """

    def __init__(self, run: ExitStack) -> None:
        self.run = run

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Begin, before the first batch; in each process on its own device."""
        if stage == "fit":
            self.run.enter_context(fast_products(True, trainer.strategy.root_device))
