"""jq expressions over an object, combined into one program, as parsing the object is the expensive part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steersman.nodes.stages.declaration import StageError
from steersman.work.extras import MissingExtra, require
from steersman.work.offloading import expect_offloading

MOST_SOURCE: Final = 1 << 14
"""Characters of an expression."""
_PRELUDE: Final = "def env: {}; {} as $ENV | "
"""Start of each program, which hides the environment variables of the process."""

Found = list[Any] | None
"""Results of an expression, without null; None if it failed."""


class Expressions:
    """Expressions that are evaluated together: `add` each, then `evaluate` objects."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._program: Any = None

    def add(self, source: str) -> int:
        """Add an expression and return the index of its results in `evaluate`. Raises StageError."""
        found = self._places.get(source)
        if found is None:
            if len(source) > MOST_SOURCE:
                raise StageError(f"an expression of more than {MOST_SOURCE} characters")
            _compiled(source, source)  # alone first, so that a syntax error in it cannot affect the others
            found = self._places[source] = len(self._places)
            self._program = None
        return found

    def evaluate(self, text: str) -> Sequence[Found]:
        """Return the results of each expression for an object in JSON."""
        expect_offloading()
        if not self._places:
            return ()
        if self._program is None:
            parts = (f"(try [({source}\n) | values] catch null)" for source in self._places)
            self._program = _compiled(f"{_PRELUDE}[{', '.join(parts)}]", "all expressions")
        try:
            found = self._program.input_text(text).first()
        except (ValueError, StopIteration):  # an expression ended the whole program, as `halt` does
            return [None] * len(self._places)
        return found if isinstance(found, list) else [None] * len(self._places)


def _compiled(source: str, shown: str) -> Any:
    try:
        jq = require("jq", feature="stages of simulated nodes", package="jq", extra="stages")
    except MissingExtra as error:
        raise StageError(str(error)) from None
    try:
        return jq.compile(source)
    except ValueError as error:
        why = str(error).partition("\n")[0].removeprefix("jq: error: ")
        raise StageError(f"{shown}: {why}") from None
