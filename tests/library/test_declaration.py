"""Declarations of resources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from steersman import DefinitionError, OpenAPI, Server, definition_of, resource, version_of
from steersman.library.checked import check_definition
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
        "plural": "foos",
        "singular": "foo",
        "kind": "Foo",
        "listKind": "FooList",
        "shortNames": ["fo"],
        "categories": ["all"],
    }
    (version,) = spec["versions"]
    assert version["subresources"] == {"status": {}}
    assert version["selectableFields"] == [{"jsonPath": ".spec.size"}]


def declared(**facts: Any) -> Any:
    return resource("e.x/v1", **facts)(msgspec.defstruct("Foo", []))


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"rules": ["self.x"]}, "Foo: rules has 'self.x', which is no Rule"),
        ({"printer_columns": ["a"]}, "Foo: printer_columns has 'a', which is no PrinterColumn"),
        ({"short_names": "fl"}, "Foo: short_names is a list of str, not 'fl'"),
        ({"selectable_fields": ".spec.a"}, "Foo: selectable_fields is a list of str, not '.spec.a'"),
        ({"scale": ".spec.replicas"}, "Foo: scale is a Scale, not '.spec.replicas'"),
    ],
)
def test_facts_of_another_form_are_refused(facts: dict[str, Any], text: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        declared(**facts)
    assert str(refusal.value) == text


def test_a_declaration_without_an_api_version_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"Empty: @resource takes an apiVersion"):
        resource(Empty)  # type: ignore[arg-type]  # what a newcomer writes


def test_what_is_no_class_is_not_served() -> None:
    with pytest.raises(DefinitionError, match=r"'A' is no class, and is not declared with @resource"):
        Server("A")  # type: ignore[arg-type]  # what a newcomer writes


def test_two_classes_of_one_kind_are_not_served_together() -> None:
    first, second = (msgspec.defstruct(name, []) for name in ("Foo", "Bar"))
    resource("e.x/v1")(first)
    resource("e.x/v1", kind="Foo", plural="bars", singular="bar")(second)
    with pytest.raises(DefinitionError, match=r"Foo and Bar are both of the kind Foo of e.x"):
        Server(first, second)


@pytest.mark.parametrize("modes", ["RBAC", ("Node",)])
def test_modes_of_authorization_that_there_are_not_are_refused(modes: Any) -> None:
    with pytest.raises(ValueError, match=r"authorization_mode .*RBAC, AlwaysAllow, AlwaysDeny"):
        Server(declared(), authorization_mode=modes)


class Forward(msgspec.Struct):
    it: Nowhere  # type: ignore[name-defined]  # noqa: F821  # what is tested


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Forward, r"Forward: an annotation of Forward names what is not there: name 'Nowhere'"),
        (msgspec.defstruct("Foo", [("kind", str)]), r"Foo.kind: every object has this"),
        (msgspec.defstruct("Foo", [("metadata", str)]), r"Foo.metadata is of the type ObjectMeta, not str"),
        (
            msgspec.defstruct("Foo", [("it", Annotated[int, OpenAPI({"maximun": 1})])]),
            r"Foo.it: a schema has no member 'maximun'",
        ),
        (
            msgspec.defstruct("Foo", [("it", list[Annotated[str, OpenAPI({"pattern": "["})]])]),
            r"Foo: .*properties\[it\].items.pattern: .*must be a valid regular expression",
        ),
        (
            msgspec.defstruct("Foo", [("it", Annotated[str, OpenAPI({"pattern": 3})])]),
            r"Foo: Expected `str`, got `int` - at .*pattern",
        ),
    ],
)
def test_fields_that_no_definition_can_say_are_refused_with_their_place(model: type, text: str) -> None:
    with pytest.raises(DefinitionError, match=text):
        check_definition(declaration_of(resource("e.x/v1")(model)))


async def test_a_token_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    server = Server(
        declared(), data_dir=tmp_path, storage="memory", listen=False, token_auth_file=f"{tmp_path}/none.csv"
    )
    with pytest.raises(ValueError, match=r"token_auth_file: .*none.csv cannot be read: No such file"):
        await server.start()
