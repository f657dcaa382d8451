"""Numbers of examples of property tests, in proportion to those of the profile: CI tries more than `make test`."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

IN_CI: Final = 100
"""Examples of a property in CI."""
BY_DEFAULT: Final = 20
"""Examples of a property elsewhere."""


def examples(in_ci: int) -> int:
    """Return how many examples of a property are tried now, if there are `in_ci` in CI."""
    return in_ci * settings().max_examples // IN_CI
