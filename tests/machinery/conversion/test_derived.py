"""Conversions made from types that are alike."""

from __future__ import annotations

import msgspec
import pytest

from steersman.machinery.conversion.conversion import Conversion
from steersman.machinery.conversion.derived import derive_both_ways, derive_conversion


class Shared(msgspec.Struct):
    x: int = 0


class OldPart(msgspec.Struct):
    name: str = ""
    kind: str = ""


class NewPart(msgspec.Struct):
    name: str = ""
    kind: str = ""


class Old(msgspec.Struct):
    kind: str = ""
    api_version: str = ""
    metadata: Shared = msgspec.field(default_factory=Shared)
    number: int = 0
    shared: Shared = msgspec.field(default_factory=Shared)
    part: OldPart | None = None
    parts: list[OldPart] | None = None
    named: dict[str, OldPart] = {}


class New(msgspec.Struct):
    kind: str = ""
    api_version: str = ""
    metadata: Shared = msgspec.field(default_factory=Shared)
    number: int = 0
    shared: Shared = msgspec.field(default_factory=Shared)
    part: NewPart | None = None
    parts: list[NewPart] | None = None
    named: dict[str, NewPart] = {}


class Longer(msgspec.Struct):
    kind: str = ""
    api_version: str = ""
    number: str = ""


def test_every_member_is_carried_over() -> None:
    there, back = derive_both_ways(Old, New)
    old = Old("K", "v1", Shared(1), 3, Shared(5), OldPart("a", "P"), [OldPart("b")], {"c": OldPart("d")})
    new = there.convert(old)
    assert new == New("", "", Shared(1), 3, Shared(5), NewPart("a", "P"), [NewPart("b")], {"c": NewPart("d")})
    assert new.shared is old.shared
    new.kind, new.api_version = "K", "v1"
    assert back.convert(new) == Old(
        "", "", Shared(1), 3, Shared(5), OldPart("a", "P"), [OldPart("b")], {"c": OldPart("d")}
    )
    assert there.convert(Old()) == New()
    assert there.convert(Old(parts=[])) == New(parts=[])


def test_types_that_are_not_alike_need_a_conversion_of_their_own() -> None:
    class Odd(msgspec.Struct):
        kind: str = ""
        api_version: str = ""
        number: int = 0

    with pytest.raises(TypeError, match="Old differs in"):
        derive_conversion(Old, Odd)
    with pytest.raises(TypeError, match="are not alike"):
        derive_conversion(Odd, Longer)


def test_parts_that_are_not_alike_are_converted_as_they_are_said_to_be() -> None:
    def shout(part: OldPart) -> NewPart:
        return NewPart(part.name.upper())

    convert = derive_conversion(Old, New, (Conversion(OldPart, NewPart, shout),))
    assert convert(Old(parts=[OldPart("a")])).parts == [NewPart("A")]
