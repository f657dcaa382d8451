"""Declarations of resources."""

from __future__ import annotations

import msgspec
import pytest

from steersman import Server, definition_of, resource, version_of
from steersman.library.declaration import declaration_of, plural_of


class Empty(msgspec.Struct):
    pass


@pytest.mark.parametrize(
    ("singular", "plural"),
    [("flunder", "flunders"), ("policy", "policies"), ("key", "keys"), ("ingress", "ingresses"), ("box", "boxes")],
)
def test_the_plural_is_english(singular: str, plural: str) -> None:
    assert plural_of(singular) == plural


def test_names_come_from_the_class_unless_they_are_given() -> None:
    @resource("e.x/v1", singular="crew")
    class Policy(msgspec.Struct):
        pass

    found = declaration_of(Policy)
    assert (found.kind, found.plural, found.singular) == ("Policy", "policies", "crew")


@pytest.mark.parametrize("text", ["v1", "e.x/", "/v1", "e.x/v1/x"])
def test_an_api_version_has_a_group(text: str) -> None:
    with pytest.raises(ValueError, match="is no GROUP/VERSION"):
        resource(text)


def test_a_class_without_fields_of_its_own_kind_is_refused() -> None:
    class Plain:
        pass

    with pytest.raises(TypeError, match=r"Plain is no msgspec.Struct, dataclass or pydantic model"):
        resource("e.x/v1")(Plain)


def test_a_class_that_is_not_declared_is_refused() -> None:
    with pytest.raises(TypeError, match="Empty is not declared with @resource"):
        Server(Empty)


def test_a_version_is_declared_once() -> None:
    @resource("e.x/v1")
    class Foo(msgspec.Struct):
        pass

    version_of(Foo, "v1beta1")(Empty)
    with pytest.raises(ValueError, match="Foo has a version v1beta1 already"):
        version_of(Foo, "v1beta1")(Empty)


def test_a_conversion_goes_both_ways() -> None:
    @resource("e.x/v1")
    class Foo(msgspec.Struct):
        pass

    class Older(msgspec.Struct):
        def convert_to(self) -> Foo:
            return Foo()

    with pytest.raises(TypeError, match="Older has one of convert_to and convert_from"):
        version_of(Foo, "v1beta1")(Older)


def test_two_classes_of_one_name_are_not_served_together() -> None:
    first, second = (msgspec.defstruct(name, []) for name in ("Foo", "Foos"))
    resource("e.x/v1")(first)
    resource("e.x/v1", plural="foos")(second)
    with pytest.raises(ValueError, match=r"Foos and Foo of e.x are both called foos"):
        Server(first, second)


def test_the_definition_has_what_was_declared() -> None:
    @resource("e.x/v1", namespaced=False, short_names=["fo"], categories=["all"], selectable_fields=[".spec.size"])
    class Foo(msgspec.Struct):
        status: Empty | None = None

    spec = definition_of(Foo)["spec"]
    assert spec["scope"] == "Cluster"
    assert spec["names"] == {
        "plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList", "shortNames": ["fo"],
        "categories": ["all"],
    }  # fmt: skip
    (version,) = spec["versions"]
    assert version["subresources"] == {"status": {}}
    assert version["selectableFields"] == [{"jsonPath": ".spec.size"}]
