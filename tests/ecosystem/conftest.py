"""The tiny recipes of tests/training, and what tests/models compares with torch."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / name) for name in ("training", "models")]
