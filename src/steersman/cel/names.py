"""The escaping of member names in expressions (apiserver `cel/escaping.go`)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from steersman.work.patterns import late_pattern

RESERVED: Final = frozenset(
    {
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    }
)
"""Words of the language, which cannot be used for a member in an expression."""

_PARTS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_WRITTEN: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_NAME: Final = late_pattern("[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_ESCAPED: Final = late_pattern("__|[-./]")
_ESCAPE: Final = late_pattern("__[^_]+__")
_LONGEST_KEPT: Final = 256
"""The most characters of a cached name, because objects may have names of any length."""


def escape(name: str) -> str | None:
    """Return the name of a member in expressions; None if they cannot name it."""
    return _escaped(name) if len(name) <= _LONGEST_KEPT else _escaped.__wrapped__(name)


def unescape(escaped: str) -> str | None:
    """Return the member that a name denotes; None if there is none."""
    return _unescaped(escaped) if len(escaped) <= _LONGEST_KEPT else _unescaped.__wrapped__(escaped)


@lru_cache(maxsize=8192)
def _escaped(name: str) -> str | None:
    if name in RESERVED:
        return f"__{name}__"
    if _NAME.fullmatch(name) is None:
        return None
    return _ESCAPED.sub(lambda found: _PARTS[found[0]], name)


@lru_cache(maxsize=8192)
def _unescaped(escaped: str) -> str | None:
    if "__" not in escaped:
        return escaped
    out: list[str] = []
    at = 0
    for found in _ESCAPE.finditer(escaped):
        word = found[0][2:-2]
        written = _WRITTEN.get(word)
        if written is None and word in RESERVED and found[0] == escaped:
            written = word
        if written is None:
            return None
        out += escaped[at : found.start()], written
        at = found.end()
    return "".join([*out, escaped[at:]])
