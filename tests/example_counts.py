"""Numbers of examples of property tests, in proportion to the profile's: CI tries more than other runs."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

IN_CI: Final = 100
"""Examples of a property in CI."""
BY_DEFAULT: Final = 20
"""Examples of a property elsewhere."""


def examples(in_ci: int) -> int:
    """Return the number of examples of a property in this run, for `in_ci` examples in CI."""
    return in_ci * settings().max_examples // IN_CI
