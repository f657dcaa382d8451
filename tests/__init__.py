"""Tests: a module `steersman.a.b` has its tests in `tests/a/b` or `tests/a/test_b.py`; so have `tools` and `bench`."""

from pathlib import Path
from typing import Final

from tests import memoised, patterns

patterns.watch()
memoised.watch()  # before anything of Steersman is imported

ROOT: Final = Path(__file__).resolve().parents[1]
"""Root folder of the project."""
