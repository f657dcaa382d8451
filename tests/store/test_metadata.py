"""Finalizers of the garbage collector: what a deletion makes of them."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import DeleteOptions, ObjectMeta
from steersman.rest.strategy import Strategy
from steersman.store.metadata import collector_finalizers


class Uncounted(list[str]):
    """A list that no loop of Python goes through."""

    def __iter__(self) -> NoReturn:
        raise AssertionError("a loop over all finalizers")


def found(finalizers: list[str], **options: Any) -> list[str] | None:
    config_map = ConfigMap(metadata=ObjectMeta())
    config_map.metadata.finalizers = finalizers
    return collector_finalizers(Strategy(), config_map, DeleteOptions(**options))


@pytest.mark.parametrize(
    ("finalizers", "options", "wanted"),
    [
        ([], {}, None),
        (["a"], {}, None),
        (["a"], {"propagation_policy": "Orphan"}, ["a", "orphan"]),
        (["a"], {"orphan_dependents": True}, ["a", "orphan"]),
        (["orphan", "a"], {"orphan_dependents": True}, None),
        (["orphan", "a"], {"orphan_dependents": False}, ["a"]),
        (["orphan", "a"], {}, None),
        (["orphan", "a"], {"propagation_policy": "Background"}, ["a"]),
        (["orphan", "a"], {"propagation_policy": "Foreground"}, ["a", "foregroundDeletion"]),
        (["foregroundDeletion"], {}, None),
        (["foregroundDeletion", "orphan"], {}, ["foregroundDeletion"]),
        (["orphan", "foregroundDeletion"], {}, ["orphan"]),
    ],
)
def test_finalizers_of_the_collector_follow_the_options(
    finalizers: list[str], options: dict[str, Any], wanted: list[str] | None
) -> None:
    assert found(finalizers, **options) == wanted


def test_many_finalizers_of_others_take_no_loop() -> None:
    assert found(Uncounted(f"a.io/{number}" for number in range(60_000))) is None
