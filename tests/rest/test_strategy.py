"""Strategy hooks: an optional hook is called only for classes that define it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.api.meta.v1 import ObjectMeta
from steersman.api.node.v1 import RuntimeClass
from steersman.registry.core.configmaps import CONFIG_MAPS
from steersman.registry.core.events import EVENTS
from steersman.registry.core.services.services import SERVICES
from steersman.rest.context import Context
from steersman.rest.strategy import StatusStrategy, Strategy


def test_a_class_knows_which_rare_hooks_it_has_its_own_or_inherited() -> None:
    class Telling(Strategy[Any, Any]):
        def warnings_on_create(self, ctx: Context, obj: Any) -> Iterator[str]:
            yield "new"

        def canonicalize(self, obj: Any) -> None:
            pass

    class Inheriting(Telling):
        pass

    assert Telling.does == Inheriting.does == {"warnings_on_create", "canonicalize"}
    assert Strategy.does == StatusStrategy.does == frozenset()


def test_built_in_kinds_have_the_hooks_that_they_need() -> None:
    assert not CONFIG_MAPS.strategy.does
    assert "validates_metadata_last" in EVENTS.strategy.does
    assert SERVICES.strategy.does >= {"canonicalize", "warnings_on_create", "warnings_on_update"}


def test_warnings_about_any_object_are_those_of_create_and_update() -> None:
    class Telling(Strategy[Any, Any]):
        def warnings(self, ctx: Context, obj: Any) -> Iterator[str]:
            yield f"about {obj}"

    assert Telling.does == {"warnings_on_create", "warnings_on_update"}
    ctx: Any = None
    assert list(Telling().warnings_on_create(ctx, "a")) == ["about a"]
    assert list(Telling().warnings_on_update(ctx, "b", "a")) == ["about b"]


def test_declared_fields_may_not_change() -> None:
    class Fixed(Strategy[Any, Any]):
        immutable = ("handler", "metadata/generateName")

    def runtime_class(handler: str, prefix: str) -> RuntimeClass:
        return RuntimeClass(metadata=ObjectMeta(generate_name=prefix), handler=handler)

    ctx: Any = None
    found = Fixed().validate_update(ctx, runtime_class("b", "y"), runtime_class("a", "x"))
    assert list(map(str, found)) == [
        'handler: Invalid value: "b": field is immutable',
        'metadata.generateName: Invalid value: "y": field is immutable',
    ]
    assert not list(Fixed().validate_update(ctx, runtime_class("a", "x"), runtime_class("a", "x")))
