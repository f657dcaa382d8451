"""Tests: of a module `steersman.a.b` in `tests/a/b` or `tests/a/test_b.py`, of programs in `tools` and `bench`."""

from pathlib import Path
from typing import Final

from tests import memoised, patterns

patterns.watch()
memoised.watch()  # before anything of Steersman is imported

ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder of the project."""
