"""Loops with two variables (cel-go `ext.TwoVarComprehensions`)."""

from __future__ import annotations

from typing import Any, Final

from steersman.cel.environment import Library, Overload
from steersman.cel.macros import MAP_INSERT, TWO_VARIABLE_MACROS
from steersman.cel.types import map_of, type_param
from steersman.cel.values import entries

_K: Final = type_param("K")
_V: Final = type_param("V")
_MAP: Final = map_of(_K, _V)


def _insert(target: Any, *added: Any) -> Any:
    """Add an entry or the entries of another map to the map of a loop, which nothing else can see yet."""
    for key, value in (added,) if len(added) == 2 else entries(added[0]):
        target.insert(key, value)
    return target


COMPREHENSIONS: Final = Library(
    functions={
        MAP_INSERT: (
            Overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert),
            Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert),
        )
    },
    macros=TWO_VARIABLE_MACROS,
)
