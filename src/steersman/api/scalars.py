"""Scalar types of the API that are not plain JSON types, and the base class of every generated Struct.

A scalar's value is plain Python data in the form that the server prints: `Quantity`, `Time`, `MicroTime` and
`Duration` are canonical text. Their classes exist only so that a decoder knows where to call its `dec_hook`; type
checkers see `str`. `RawExtension` and `FieldsV1` are kept as raw JSON, undecoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec


class Wire(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False, rename="camel"):
    """Base class of every generated type. A member is omitted from JSON where Go omits its zero value.

    A default given as a value is omitted; one given as `default_factory` is always printed.
    """


if TYPE_CHECKING:
    Quantity: TypeAlias = str
    Time: TypeAlias = str
    MicroTime: TypeAlias = str
    Duration: TypeAlias = str
    Float64: TypeAlias = float
    FieldsV1: TypeAlias = msgspec.Raw | None
    RawExtension: TypeAlias = msgspec.Raw | None
else:
    # A member of these types is None when it is not set; decoders cannot tell a Raw from null by a union.
    FieldsV1 = msgspec.Raw
    RawExtension = msgspec.Raw

    class _Canonical(type):
        """Metaclass that lets the result of a decoding hook, a plain value, count as an instance of the class."""

        __instancecheck__ = type
        """Check of decoders for each value of a hook. `type` returns a class, which is true: every value passes,
        without a call of Python code.
        """

    class Quantity(metaclass=_Canonical):
        """A resource.Quantity as canonical text, e.g. "500m" or "1Gi"."""

    class Time(metaclass=_Canonical):
        """A meta/v1 Time as text in UTC with seconds, e.g. "2006-01-02T15:04:05Z"."""

    class MicroTime(metaclass=_Canonical):
        """A meta/v1 MicroTime as text in UTC with microseconds, e.g. "2006-01-02T15:04:05.000000Z"."""

    class Duration(metaclass=_Canonical):
        """A meta/v1 Duration as Go prints it, e.g. "1h0m0s"."""

    class Float64(metaclass=_Canonical):
        """A float64; a whole number is an int, as Go prints it without a fraction."""


Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
IntOrString: TypeAlias = Int32 | str
"""An intstr.IntOrString: a number or text such as "25%" or a port's name."""
JSON: TypeAlias = Any
"""An apiextensions JSON: any JSON value, decoded without a type."""


def nil() -> None:
    """Return the default of a member that prints null when it is not set."""


def zero_quantity() -> str:
    """Return the default of a quantity that is always printed."""
    return "0"


def zero_duration() -> str:
    """Return the default of a duration that is always printed."""
    return "0s"
