"""Regular expressions of modules, compiled at their first use: most are for input that a short-lived server never gets."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Final, cast

_METHODS: Final = ("fullmatch", "match", "search", "findall", "finditer", "sub", "subn", "split")


class _LatePattern:
    """A pattern that is not compiled yet. Once it is, the methods of the compiled pattern are attributes."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern at the first use of a method. Raises AttributeError, and re.error."""
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for each in _METHODS:
            setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)


def late_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when it is first used. It has the methods of a compiled pattern, and `pattern`."""
    return cast("re.Pattern[AnyStr]", _LatePattern(pattern, flags))
