"""Strategy hooks: an optional hook is called only for classes that define it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
