"""Facts about each generated type beyond its class: Go types, protobuf tags, patch strategies, list types.

The facts are read from the JSON file beside a type's module when they are first needed.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec


class Field(msgspec.Struct, frozen=True, gc=False):
    """Field of a Go struct. Fields are in the order of the struct.

    `type` is Go's with packages shortened to two elements: `[]core.v1.Container`. `attribute` is the member of the
    Python class, empty for an embedded struct (`inline`) and for fields that JSON does not show. `omit` is "omitempty",
    "omitzero" or both joined by a plus. `tag` and `wire` are protobuf's (tag 0: not in protobuf), `strategy` and `key`
    strategic merge patch's, `list`, `keys` and `map` server-side apply's.
    """

    name: str
    go: str
    type: str
    attribute: str = ""
    omit: str = ""
    pointer: bool = False
    inline: bool = False
    tag: int = 0
    wire: str = ""
    strategy: str = ""
    key: str = ""
    list: str = ""
    keys: tuple[str, ...] = ()
    map: str = ""


class Table(msgspec.Struct, frozen=True):
    """Structs of a module, the named types of their fields that are not structs, and the atomic structs."""

    structs: dict[str, tuple[Field, ...]]
    scalars: dict[str, str]
    map_types: dict[str, str]


@lru_cache(maxsize=128)
def table(module: str) -> Table:
    """Return the table of a module below `steersman.api`, e.g. "core.v1". Raises FileNotFoundError for other names."""
    package, version = module.split(".")
    return _TABLES.decode((Path(__file__).parent / package / f"{version}.json").read_bytes())


_TABLES = msgspec.json.Decoder(Table)


def fields_of(cls: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Return the fields of a generated class's Go struct. Embedded structs are not flattened."""
    return table(module_of(cls)).structs[cls.__name__]


def module_of(cls: type) -> str:
    """Return the name of a generated class's module below `steersman.api`."""
    return cls.__module__.removeprefix("steersman.api.")
