"""The functions `find` and `findAll` of regular expressions (apiserver `cel/library` regex)."""

from __future__ import annotations

from typing import Final

from steersman.cel.environment import Library, Overload
from steersman.cel.regular import find, find_all
from steersman.cel.types import INT, STRING, list_of

_LIST: Final = list_of(STRING)

KUBERNETES_REGEX: Final = Library(
    functions={
        "find": (Overload("string_find_string", (STRING, STRING), STRING, find, member=True),),
        "findAll": (
            Overload("string_find_all_string", (STRING, STRING), _LIST, find_all, member=True),
            Overload("string_find_all_string_int", (STRING, STRING, INT), _LIST, find_all, member=True),
        ),
    }
)
