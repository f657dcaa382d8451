"""The variable `device` of expressions that select devices (kubernetes `dynamic-resource-allocation/cel`)."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from steersman.cel import declared
from steersman.cel.declared import DeclaredType, declared_map, declared_object
from steersman.cel.environment import Environment, Library, Overload
from steersman.cel.library.bindings import BINDINGS
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.quantities import QUANTITY
from steersman.cel.types import BOOL, DYN
from steersman.cel.values import EvaluationError, equal

_MAX_DOMAIN: Final = 63
_MAX_ID: Final = 32
_MAX_DRIVER: Final = 63
_MAX_VALUE: Final = 64
_MAX_ENTRIES: Final = 32
MAX_INCLUDED: Final = 48
"""The most values of a list attribute."""

_DOMAIN: Final = declared.STRING.limited(_MAX_DOMAIN)
_ID: Final = declared.STRING.limited(_MAX_ID)
ATTRIBUTE: Final = declared.ANY.limited(_MAX_VALUE)
_ATTRIBUTES: Final = declared_map(_DOMAIN, declared_map(_ID, ATTRIBUTE, _MAX_ENTRIES), _MAX_ENTRIES)
_CAPACITY: Final = declared_map(_DOMAIN, declared_map(_ID, DeclaredType(QUANTITY), _MAX_ENTRIES), _MAX_ENTRIES)
DEVICE: Final = declared_object(
    "kubernetes.DRADevice",
    {
        "driver": declared.STRING.limited(_MAX_DRIVER),
        "attributes": _ATTRIBUTES,
        "capacity": _CAPACITY,
        # A bool has a size here, so that a comparison is not free.
        "allowMultipleAllocations": declared.BOOL.limited(1),
    },
)


def _includes(target: Any, wanted: Any) -> bool:
    if not isinstance(target, list | tuple):
        return equal(target, wanted)
    if any(equal(value, wanted) for value in target[:MAX_INCLUDED]):
        return True
    if len(target) > MAX_INCLUDED:
        raise EvaluationError(f"'includes' function cannot be applied to lists longer than {MAX_INCLUDED} values")
    return False


_INCLUDES: Final = Library(
    functions={"includes": (Overload("dra_includes_dyn_dyn", (DYN, DYN), BOOL, _includes, member=True),)}
)
"""The function for lists in attributes. It is an alpha feature, so only stored expressions may use it."""


@cache
def device_environment(*, stored: bool) -> Environment:
    """Return the environment of expressions that are stored already, or of new ones, which may use less."""
    libraries = (BINDINGS, _INCLUDES) if stored else (BINDINGS,)
    return base_environment().extended({"device": DEVICE}, libraries)
