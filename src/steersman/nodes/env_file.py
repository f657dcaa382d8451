"""Files of variables in volumes (`fileKeyRef`), with one `NAME='value'` a line.

Follows pkg/kubelet/util/env (ParseEnv): a small part of shell syntax, with values in single quotes only.
"""

from __future__ import annotations

from collections.abc import Iterator

_BLANK = " \t"


class EnvFileError(ValueError):
    """The file is no valid file of variables. The text is the kubelet's."""


class EnvFile:
    """Parsed file of variables. A syntax error matters only for variables that come after it."""

    def __init__(self, text: str) -> None:
        self._values: dict[str, str] = {}
        self._error: EnvFileError | None = None
        try:
            for name, value in _variables(text):
                self._values.setdefault(name, value)
        except EnvFileError as error:
            self._error = error

    def value(self, key: str) -> str:
        """Return the value of the first variable named `key`; "" if there is none.

        Raises EnvFileError for a syntax error before that variable. As in a kubelet, an error after it does not matter.
        """
        if key not in self._values and self._error is not None:
            raise self._error
        return self._values.get(key, "")


def _variables(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and values. Raises EnvFileError."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    number = 0
    while number < len(lines):
        line = lines[number].removesuffix("\r").lstrip(_BLANK)
        number += 1
        if not line or line.startswith("#"):
            continue
        name, rest = _assigned(line, number)
        if rest.startswith(tuple(_BLANK)):
            yield name, ""
            continue
        if not rest.startswith("'"):
            raise _wrong(number, "value must be enclosed in single quotes")
        value, number = _quoted(lines, rest[1:], number)
        yield name, value


def _assigned(line: str, number: int) -> tuple[str, str]:
    """Return the name, and the text after `=`. Raises EnvFileError."""
    before, sign, rest = line.partition("=")
    if not sign:
        raise _wrong(number, "missing '='")
    name = before.rstrip(_BLANK)
    if not name:
        raise _wrong(number, "empty variable name")
    if name != before:
        raise _wrong(number, "whitespace before '=' is not allowed")
    return name, rest


def _quoted(lines: list[str], rest: str, number: int) -> tuple[str, int]:
    """Return a value up to its closing quote, and the number of the last line read. Raises EnvFileError."""
    first, parts = number, []
    while "'" not in rest:
        parts.append(rest)
        if number == len(lines):
            raise EnvFileError(f"invalid environment variable format starting at line {first}: unclosed single quote")
        rest = lines[number].removesuffix("\r")
        number += 1
    last, _, after = rest.partition("'")
    after = after.lstrip(_BLANK)
    if after and not after.startswith("#"):
        raise _wrong(number, "unexpected content after closing quote")
    return "\n".join((*parts, last)), number


def _wrong(number: int, why: str) -> EnvFileError:
    return EnvFileError(f"invalid environment variable format at line {number}: {why}")
