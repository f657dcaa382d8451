"""Formatting of Go's fmt package: `Sprint`, `Sprintln`, `Sprintf`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from steersman.machinery.errors.field import quote
from steersman.machinery.go.strings import to_upper
from steersman.nodes.stages.go_template.values import (
    MISSING,
    TemplateError,
    Value,
    float_text,
    text_of,
    type_name,
)
from steersman.work.patterns import late_pattern

MOST_WIDTH: Final = 1000
"""Largest width and precision of a verb."""
_VERB: Final = late_pattern(r"%([-+# 0]*)(\d+|\*)?(?:\.(\d*|\*))?(.|\Z)", re.DOTALL | re.ASCII)
_BASES: Final = {"b": "b", "o": "o", "x": "x", "X": "X", "d": "d"}


def sprint(values: Sequence[Value]) -> str:
    """Format values as fmt.Sprint does, with a space between two values of which neither is a string."""
    parts: list[str] = []
    for number, value in enumerate(values):
        if number and not isinstance(value, str) and not isinstance(values[number - 1], str):
            parts.append(" ")
        parts.append(text_of(value))
    return "".join(parts)


def sprintln(values: Sequence[Value]) -> str:
    """Format values as fmt.Sprintln does."""
    return " ".join(map(text_of, values)) + "\n"


def sprintf(layout: str, values: Sequence[Value]) -> str:
    """Format values as fmt.Sprintf does, without explicit argument indexes.

    Raises TemplateError for too large widths.
    """
    parts: list[str] = []
    left = list(values)
    at = 0
    for found in _VERB.finditer(layout):
        parts.append(layout[at : found.start()])
        at = found.end()
        flags, verb = found[1], found[4]
        width, flags = _size(found[2], left, flags)
        precision, _ = _size(found[3], left, "") if found[3] != "" else (0, "")
        if verb == "%":
            parts.append("%")
        elif not verb:
            parts.append("%!(NOVERB)")
        elif not left:
            parts.append(f"%!{verb}(MISSING)")
        else:
            parts.append(_padded(_formatted(verb, flags, precision, left.pop(0)), flags, width))
    parts.append(layout[at:])
    if left:
        parts.append(f"%!(EXTRA {', '.join(f'{type_name(each)}={text_of(each)}' for each in left)})")
    return "".join(parts)


def _size(given: str | None, left: list[Value], flags: str) -> tuple[int | None, str]:
    """Return a width or precision, and the flags with the `-` that a negative one adds."""
    if given is None:
        return None, flags
    size = int(given[:9]) if given != "*" else left.pop(0) if left else 0
    if not isinstance(size, int) or isinstance(size, bool):
        raise TemplateError("printf: a width that is no int")
    if abs(size) > MOST_WIDTH:
        raise TemplateError(f"printf: a width of more than {MOST_WIDTH}")
    return abs(size), flags + ("-" if size < 0 else "")


def _padded(text: str, flags: str, width: int | None) -> str:
    missing = (width or 0) - len(text)
    if missing <= 0:
        return text
    if "-" in flags:
        return text + " " * missing
    if "0" in flags:
        sign = text[:1] if text[:1] in ("+", "-") else ""
        return sign + "0" * missing + text[len(sign) :]
    return " " * missing + text


def _formatted(verb: str, flags: str, precision: int | None, value: Value) -> str:
    if verb == "T":
        return type_name(value)
    if verb == "v":
        return _signed(text_of(value), flags, value)
    if value is None or value is MISSING:
        return f"%!{verb}(<nil>)"
    if isinstance(value, list):
        return f"[{' '.join(_formatted(verb, flags, precision, each) for each in value)}]"
    if isinstance(value, dict):
        pairs = (
            f"{_formatted(verb, flags, precision, key)}:{_formatted(verb, flags, precision, value[key])}"
            for key in sorted(value)
        )
        return f"map[{' '.join(pairs)}]"
    text = _of_basic(verb, flags, precision, value)
    return f"%!{verb}({type_name(value)}={text_of(value)})" if text is None else text


def _of_basic(verb: str, flags: str, precision: int | None, value: Value) -> str | None:
    """Format a string, number or boolean; None if the verb does not apply to it."""
    if isinstance(value, str):
        return _of_text(verb, flags, precision, str(value))
    if isinstance(value, bool):
        return text_of(value) if verb == "t" else None
    if isinstance(value, int):
        if verb in _BASES:
            prefix = {"x": "0x", "X": "0X", "o": "0", "b": "0b"}.get(verb, "") if "#" in flags else ""
            text = f"{'-' if value < 0 else ''}{prefix}{abs(value):{_BASES[verb]}}"
            return _signed(text, flags, value)
        if verb in ("c", "q", "U"):
            char = chr(value) if 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000 else "\ufffd"
            return char if verb == "c" else f"'{char}'" if verb == "q" else f"U+{value:04X}"
        return None
    return _of_float(verb, flags, precision, value)


def _of_text(verb: str, flags: str, precision: int | None, text: str) -> str | None:
    cut = text if precision is None else text[:precision]
    if verb == "s":
        return cut
    if verb == "q":
        return f"`{cut}`" if "#" in flags and "`" not in cut else quote(cut)
    if verb in ("x", "X"):
        digits = cut.encode().hex()
        return digits if verb == "x" else to_upper(digits)
    return None


def _of_float(verb: str, flags: str, precision: int | None, value: float) -> str | None:
    if verb not in ("e", "E", "f", "F", "g", "G"):
        return None
    if not math.isfinite(value) or (precision is None and verb in ("g", "G")):
        return _signed(float_text(value), flags, value)
    return _signed(f"{value:.{6 if precision is None else precision}{verb}}", flags, value)


def _signed(text: str, flags: str, value: Value) -> str:
    """Return a number's text with the sign that the flags ask for."""
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)) or text[:1] in ("-", "+"):
        return text
    return f"+{text}" if "+" in flags else f" {text}" if " " in flags else text
