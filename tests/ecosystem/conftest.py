"""The tiny recipes of tests/training."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "training"))
