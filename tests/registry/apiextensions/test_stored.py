"""Encoding and decoding of stored definitions."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread, current_thread, main_thread
from typing import Any

import pytest

from steersman.registry.apiextensions.customresourcedefinitions import (
    CLEANUP_FINALIZER,
    CUSTOM_RESOURCE_DEFINITIONS,
    CustomResourceDefinitionStrategy,
)
from steersman.work.offloading import bound, current
from tests.registry.apiextensions.definitions import definition

GROUP = "apiextensions.k8s.io"
PLURAL = "customresourcedefinitions"


async def test_the_name_is_made_of_plural_and_group_and_judged_before_other_metadata(
    cluster: Callable[..., Any],
) -> None:
    c = await cluster(CUSTOM_RESOURCE_DEFINITIONS)
    body = definition({"name": "foos.other.example.com", "labels": {"a b": "c"}})
    first, second = await c.faults(c.create(PLURAL, body, group=GROUP))
    assert first == 'metadata.name: Invalid value: "foos.other.example.com": must be spec.names.plural+"."+spec.group'
    assert second.startswith('metadata.labels: Invalid value: "a b": name part must consist of')


async def test_finalizers_need_no_domain(cluster: Callable[..., Any]) -> None:
    c = await cluster(CUSTOM_RESOURCE_DEFINITIONS)
    made = await c.create(PLURAL, definition({"finalizers": ["foo"]}), group=GROUP)
    made["metadata"]["labels"] = {"a": "b"}
    changed = await c.update(PLURAL, made, group=GROUP)
    assert changed["metadata"]["finalizers"] == ["foo"]


async def test_it_is_there_until_its_finalizer_is_gone(cluster: Callable[..., Any]) -> None:
    c = await cluster(CUSTOM_RESOURCE_DEFINITIONS)
    await c.create(PLURAL, definition(), group=GROUP)
    marked = await c.delete(PLURAL, "foos.q.example.com", group=GROUP)
    assert marked["metadata"]["finalizers"] == [CLEANUP_FINALIZER]
    again = await c.delete(PLURAL, "foos.q.example.com", group=GROUP)
    assert again["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    del again["metadata"]["finalizers"]
    await c.update(PLURAL, again, group=GROUP)
    with pytest.raises(Exception, match="not found"):
        await c.get(PLURAL, "foos.q.example.com", group=GROUP)


async def test_even_a_small_one_is_judged_beside_the_loop(
    cluster: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[Thread] = []
    names = "prepare_for_create", "prepare_for_update"
    prepare = {name: getattr(CustomResourceDefinitionStrategy, name) for name in names}

    def noted(name: str) -> Any:
        def hook(*args: Any) -> Any:
            threads.append(current_thread())
            return prepare[name](*args)

        return hook

    for name in names:
        monkeypatch.setattr(CustomResourceDefinitionStrategy, name, noted(name))
    c = await cluster(CUSTOM_RESOURCE_DEFINITIONS)
    with bound(current().for_user("alice")):
        made = await c.create(PLURAL, definition(), group=GROUP)
    with bound(current().for_user("alice")):
        await c.update(PLURAL, made, group=GROUP)
    assert len(threads) == 2
    assert main_thread() not in threads
