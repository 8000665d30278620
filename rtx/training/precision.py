"""The precision of a run: its name, and float32 that cuDNN does not round to tf32."""

from collections.abc import Iterator
from contextlib import contextmanager

# Lightning's short names are not in this list, so each precision has one name
PRECISIONS = ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true")


@contextmanager
def float32_cudnn() -> Iterator[None]:
    """Keep float32 in cuDNN inside the block, if torch keeps it in matrix products.

    On a GPU, torch by default rounds the factors of recurrent layers and convolutions to tf32, but not those of
    products. An LSTM would then be computed less exactly, and faster, than the models that it is compared with.
    """
    import torch  # takes seconds: the names above are needed without it

    cudnn = torch.backends.cudnn
    try:
        rounds = cudnn.allow_tf32 and torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # the user has set a precision for one kind of layer
        rounds = False
    if rounds:
        cudnn.allow_tf32 = False
    try:
        yield
    finally:
        if rounds:
            cudnn.allow_tf32 = True
