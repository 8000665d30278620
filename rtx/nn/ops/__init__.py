"""Operations with more than one implementation: one folder each, whose `__init__.py` chooses.

Every operation has a plain version in torch. A faster one is chosen only if it makes a whole training step at a paper's
size at least 1.2 times faster; `benchmarks/` measures it. Nobody has measured the LocalRNN in Triton on a GPU, so it
must be asked for. `with implementation("torch"):` uses the plain versions.
"""

from rtx.nn.ops.dispatch import OPERATIONS as OPERATIONS
from rtx.nn.ops.dispatch import implementation as implementation
