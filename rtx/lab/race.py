"""Who is faster, and who keeps less: measured in one run, in turns, so that what disturbs one disturbs all."""

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn

from rtx.nn.validate import check_positive


def race(runners: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """The median processor time of each runner in milliseconds, after one round that does not count.

    They take turns, A B C A B C …. Processor time leaves out what other programs take meanwhile.

    Args:
        runners: what to run, by name.
        rounds: how often each one runs.

    Raises:
        ValueError: if `rounds` is below 1.
    """
    times: dict[str, list[float]] = {name: [] for name in runners}
    for turn in range(1 + check_positive("rounds", rounds)):
        for name, run in runners.items():
            start = time.process_time()
            run()
            if turn:
                times[name].append(1000 * (time.process_time() - start))
    return {name: median(found) for name, found in times.items()}


def training_step(function: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    """A runner: forward, and backward to x and to the parameters, but for frozen ones, if `function` is a module."""
    parameters = function.parameters() if isinstance(function, nn.Module) else []
    learned = [parameter for parameter in parameters if parameter.requires_grad]

    def run() -> None:
        inputs = x.detach().requires_grad_()
        torch.autograd.grad(function(inputs).square().sum(), [inputs, *learned], allow_unused=True)

    return run


def kept_bytes(run: Callable[[], object]) -> int:
    """How much a forward pass keeps for its backward pass, parameters aside: the bytes that autograd saves.

    Args:
        run: computes something with a gradient.
    """
    found: dict[int, int] = {}

    def save(tensor: Tensor) -> Tensor:
        whole = tensor if tensor._base is None else tensor._base
        if not isinstance(whole, nn.Parameter):
            storage = tensor.untyped_storage()  # views of one array are one
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        kept = run()
    del kept
    return sum(found.values())
