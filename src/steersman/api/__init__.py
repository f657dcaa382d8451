"""The built-in API types, generated from Kubernetes' Go types. No behaviour lives here.

`load("apps", "v1")` gives the kinds of a group version and imports no other than those it refers to;
`steersman.api.tables` has what codecs and patches need beyond the classes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from steersman.api.index import MODULES, SERVED

if TYPE_CHECKING:
    import msgspec

__all__ = ["MODULES", "SERVED", "load", "module_name"]


def module_name(group: str, version: str) -> str:
    """The module that holds a group version's types. Raises KeyError for one that is not built in."""
    return f"steersman.api.{MODULES[group, version]}"


def load(group: str, version: str) -> dict[str, type[msgspec.Struct]]:
    """The Structs of a group version by kind, imported now if they were not before. Raises KeyError as above."""
    kinds: dict[str, type[msgspec.Struct]] = import_module(module_name(group, version)).KINDS
    return kinds
