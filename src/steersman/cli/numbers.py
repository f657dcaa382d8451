"""Numbers as values of flags and arguments."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """Range of numbers without NaN, which no bound keeps out, and without infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a number of the range. Raises click.BadParameter."""
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return number
