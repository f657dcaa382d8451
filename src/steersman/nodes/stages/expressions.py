"""jq expressions over an object, evaluated together, as the object is decoded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from steersman.nodes.stages.declaration import StageError
from steersman.nodes.stages.jq.filters import Filter, Scope
from steersman.nodes.stages.jq.functions import FORMATS, NATIVES, library
from steersman.nodes.stages.jq.lexer import MOST_SOURCE, ExpressionError
from steersman.nodes.stages.jq.parser import parse
from steersman.nodes.stages.jq.values import JQError, Run, TooMuch
from steersman.work.offloading import expect_offloading

__all__ = ["MOST_SOURCE", "Expressions", "Found"]

_MOST_RESULTS: Final = 1000
"""Results of an expression, beyond which it fails."""

Found = list[Any] | None
"""Results of an expression, without null; None if it failed."""


class Expressions:
    """Expressions that are evaluated together: `add` each, then `evaluate` objects."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._filters: list[Filter] = []

    def add(self, source: str) -> int:
        """Add an expression and return the index of its results in `evaluate`. Raises StageError."""
        found = self._places.get(source)
        if found is None:
            try:
                filter_ = parse(source, NATIVES, FORMATS, tuple(library()))
            except ExpressionError as error:
                raise StageError(f"{source[:_SHOWN]}: {error}") from None
            self._filters.append(filter_)
            found = self._places[source] = len(self._places)
        return found

    def evaluate(self, text: str) -> Sequence[Found]:
        """Return the results of each expression for an object in JSON."""
        expect_offloading()
        if not self._filters:
            return ()
        value = msgspec.json.decode(text)
        return [_results(each, value) for each in self._filters]


_SHOWN: Final = 200
"""Characters of an expression in an error."""


def _results(filter_: Filter, value: Any) -> Found:
    found = []
    try:
        for each in filter_(Scope(Run(library())), value):
            if each is not None:
                found.append(each)
                if len(found) > _MOST_RESULTS:
                    return None
    except (JQError, TooMuch, RecursionError):
        return None
    return found
