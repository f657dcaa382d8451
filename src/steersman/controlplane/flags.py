"""Declarations of flags: each field of a dataclass of options declares one flag completely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, field, fields
from typing import Any, Final, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from steersman.controlplane.flag_readers import OneOf, Only, boolean

T = TypeVar("T")

REQUIRED: Final[Any] = MISSING
"""Marker in place of the default of a required flag."""
_FLAG: Final = "flag"


class Flag(Struct, frozen=True):
    """A flag: the option it sets, its parser, and whether repeated flags add up.

    `values` are completions for a shell. `is_own` is True for a flag that kube-apiserver does not have.
    """

    section: str
    option: str
    read: Callable[[str], Any]
    help: str
    values: tuple[str, ...]
    repeats: bool
    is_own: bool

    @property
    def boolean(self) -> bool:
        """True if the flag may be given without a value."""
        return self.read is boolean or isinstance(self.read, Only)


class Section:
    """A section of flags in help; calling it declares a flag as a field of options."""

    def __init__(self, title: str) -> None:
        self.title: Final = title

    def __call__(
        self,
        default: T,
        read: Callable[[str], T],
        help: str,
        *,
        values: tuple[str, ...] = (),
        name: str = "",
        is_own: bool = False,
    ) -> T:
        """Return a field with this default, or REQUIRED. `name` is the flag's name if it differs from the field's."""
        if isinstance(read, OneOf):
            values = values or read.values
        repeats = isinstance(default, tuple | dict)
        metadata = {_FLAG: Flag(self.title, name, read, help, values, repeats, is_own)}
        if isinstance(default, dict):
            return cast("T", field(default_factory=dict, metadata=metadata))
        return field(default=default, metadata=metadata)


GENERIC: Final = Section("Generic")
SERVING: Final = Section("Secure serving")
AUTHENTICATION: Final = Section("Authentication")
AUTHORIZATION: Final = Section("Authorization")
ENABLEMENT: Final = Section("API enablement")
ADMISSION: Final = Section("Admission")
AUDITING: Final = Section("Auditing")
OBJECTS: Final = Section("Objects")
KUBELETS: Final = Section("Kubelets")
AGGREGATION: Final = Section("Aggregated servers")
CONTROLLERS: Final = Section("Controllers")
DEBUGGING: Final = Section("Logs and debugging")
_IN_ORDER: Final = (
    *(GENERIC, SERVING, AUTHENTICATION, AUTHORIZATION, ENABLEMENT, ADMISSION),
    *(AUDITING, OBJECTS, KUBELETS, AGGREGATION, CONTROLLERS, DEBUGGING),
)


def sections_of(options: type[Any]) -> dict[str, dict[str, Flag]]:
    """Return the flags of a dataclass by section and name, in the order of help."""
    sections: dict[str, dict[str, Flag]] = {each.title: {} for each in _IN_ORDER}
    for each in fields(options):
        flag: Flag | None = each.metadata.get(_FLAG)
        if flag is not None:
            name = flag.option or each.name.replace("_", "-")
            sections[flag.section][name] = replace(flag, option=each.name)
    return sections
