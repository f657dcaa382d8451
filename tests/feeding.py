"""Measurement of functions fed with repeated text: their time may grow no faster than the text.

The processor time of a thread is measured for a text and for one of four times its length, several times, so that a
busy machine does not fail a test.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from time import thread_time
from typing import Any

import steersman

SEEDS = (
    "a",
    "0",
    "1",
    "9",
    "-",
    ".",
    "_",
    " ",
    "\t",
    "\n",
    "\r\n",
    "%",
    "%41",
    "/",
    "//",
    ":",
    "::",
    "1:",
    ",",
    "a,",
    "=",
    "a=",
    "a=b,",
    "(",
    ")",
    "[",
    "[0]",
    "<",
    "<a ",
    "{",
    "}",
    '"',
    '\\"',
    "'",
    "\\",
    "\\u0061",
    "$",
    "$(a)",
    "é",
    "\U0001f600",
    "A",
    "0.",
    "1.",
    "a.",
    "a/",
    "a-",
    "a_",
    "0_",
    "x,y=",
    "!",
    "&",
    "&a;",
    ";",
    "a;",
    "+",
    "1s",
    "1h1m",
    "*/1,",
    "1-2,",
    "..a",
    ".*",
    "[*]",
    "- ",
    "a: ",
    "? ",
    "#",
    "f:",
    "~1",
    "@",
    "a@",
    "\0",
    "Z",
    "T",
    "1e",
    "Ki",
    "()",
    "(a",
    "in (a)",
    "-----BEGIN A-----\n",
    "1.2.3-",
    "a|",
    "a?",
    "{{",
    "{{.a}}",
)
BEGINNINGS = (
    "",
    "1",
    "a",
    "/",
    "0x",
    "1s ",
    "v1.0.0-",
    "http://a/",
    "1.2.3.4/",
    "2001:",
    "$.",
    "{.",
    '"',
    "[",
    '{"',
    "k:{",
    "a=",
    "-----BEGIN A-----\n",
    "@every ",
    "TZ=a",
    "<a ",
    "P1",
    "a@",
    "sha256:",
    "2006-01-02T15:04:05",
    "rgb(",
    "x in (",
)
"""Texts that a parser accepts as a beginning."""
ENDS = ("", "\0")
LENGTH = 8_000
"""Characters of the shorter text."""
MUCH = 0.03
"""Seconds below which a longer text counts as fast."""
STEEP = 8.0
"""Largest ratio of the times for a text and for one of four times its length: 4 is linear, 16 is quadratic."""

OUTSIDE = (
    "api",
    "cli",
    "controlplane",
    "testing",
    "library",
    "machinery.private_files",
    "openapi.descriptions",
    "server.certificates",
    "storage.sqlite",
)
"""Packages and modules whose functions of one text read files or the operator's text."""
OF_PATTERNS = (
    "cel.regular.",
    "schema.patterns.",
    "schema.formats._matching",
    "machinery.validation.formats.characters",
    "authorization.match_conditions._compiled",
    "scheduler.devices.expressions._program",
    "machinery.validation.formats._whole",
    "machinery.validation.formats._dotted",
)
"""Functions that compile a pattern or an expression.

The pattern is the package's, or a user's whose size `cel.pattern_size` bounds first. Two of the functions compile
expressions: `compile_expression` is fed instead.
"""
TEXTS = {"str": False, "str | None": False, "bytes": True, "bytes | None": True, "str | bytes": False}


def functions_of_one_text() -> Iterator[tuple[str, Callable[[Any], Any], bool]]:
    """Yield every function of the package with a text as its only argument: name, function, True if it takes bytes."""
    for module in pkgutil.walk_packages(steersman.__path__, "steersman."):
        name = module.name.removeprefix("steersman.")
        if name.endswith("__main__") or any(name == each or name.startswith(f"{each}.") for each in OUTSIDE):
            continue
        found = importlib.import_module(module.name)
        for own, value in vars(found).items():
            function = inspect.unwrap(value) if callable(value) else None
            if not inspect.isfunction(function) or function.__module__ != module.name:
                continue
            if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(inspect.unwrap(function)):
                continue
            wanted = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
            if len(wanted) != 1 or wanted[0].kind is not wanted[0].POSITIONAL_OR_KEYWORD:
                continue
            if wanted[0].annotation in TEXTS and not f"{name}.{own}".startswith(OF_PATTERNS):
                yield f"{name}.{own}", function, TEXTS[wanted[0].annotation]


def seconds(function: Callable[[Any], Any], text: Any) -> float:
    """Return the processor time in seconds of a call, including the formatting of an exception that it raises."""
    began = thread_time()
    try:
        function(text)
    except Exception as error:
        str(error)
    return thread_time() - began


def is_slow(function: Callable[[Any], Any], make: Callable[[int], Any]) -> bool:
    """Return True if four times the text takes much more than four times as long, in each of several tries."""
    for _ in range(4):
        few = seconds(function, make(LENGTH))
        if few * 16 < MUCH or seconds(function, make(4 * LENGTH)) <= max(MUCH, STEEP * few):
            return False
    return True


def slow_texts(
    function: Callable[[Any], Any], *, of_bytes: bool = False, beginnings: tuple[str, ...] = BEGINNINGS
) -> list[str]:
    """Return the first text found for which a function is slow, shortened; an empty list if there is none."""
    for beginning in beginnings:
        for seed in SEEDS:
            for end in ENDS:

                def make(length: int, parts: tuple[str, str, str] = (beginning, seed, end)) -> Any:
                    text = parts[0] + parts[1] * (length // len(parts[1])) + parts[2]
                    return text.encode() if of_bytes else text

                if is_slow(function, make):
                    return [f"{beginning!r} {seed!r}... {end!r}"]
    return []
