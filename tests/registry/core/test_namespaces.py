"""Namespaces: finalizers, phases, and the two steps of their deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.machinery.errors.status import StatusError
from steersman.registry.core.namespaces import NAMESPACES


def namespace(name: str = "n", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


async def test_new_namespace_is_active_with_finalizer_and_label(cluster: Callable[..., Any]) -> None:
    c = await cluster(NAMESPACES)
    made = await c.create("namespaces", namespace())
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


async def test_generated_name_becomes_the_label(cluster: Callable[..., Any]) -> None:
    c = await cluster(NAMESPACES)
    made = await c.create("namespaces", {"metadata": {"generateName": "n-"}})
    assert made["metadata"]["labels"]["kubernetes.io/metadata.name"] == made["metadata"]["name"]


async def test_only_finalize_changes_finalizers(cluster: Callable[..., Any]) -> None:
    c = await cluster(NAMESPACES)
    await c.create("namespaces", namespace())
    assert (await c.update("namespaces", namespace(finalizers=["x.example/y"])))["spec"]["finalizers"] == ["kubernetes"]
    finalized = await c.update("namespaces", namespace(finalizers=["x.example/y"]), subresource="finalize")
    assert finalized["spec"]["finalizers"] == ["x.example/y"]
    assert await c.faults(c.update("namespaces", namespace(finalizers=["bad"]), subresource="finalize")) == [
        'spec.finalizers[0]: Invalid value: "bad": name is neither a standard finalizer name nor is it fully qualified'
    ]


async def test_phase_follows_the_deletion(cluster: Callable[..., Any]) -> None:
    c = await cluster(NAMESPACES)
    await c.create("namespaces", namespace())
    body = {**namespace(), "status": {"phase": "Terminating"}}
    assert await c.faults(c.update("namespaces", body, subresource="status")) == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]


async def test_deleted_namespace_stays_until_its_finalizers_are_gone(cluster: Callable[..., Any]) -> None:
    c = await cluster(NAMESPACES)
    await c.create("namespaces", namespace())
    going = await c.delete("namespaces", "n")
    assert going["status"]["phase"] == "Terminating"
    assert going["metadata"].keys() >= {"deletionTimestamp"}
    assert "deletionGracePeriodSeconds" not in going["metadata"]
    assert await c.delete("namespaces", "n") == going
    await c.update("namespaces", namespace(finalizers=[]), subresource="finalize")
    with pytest.raises(StatusError, match="not found"):
        await c.get("namespaces", "n")


async def test_namespace_finalized_while_alive_takes_two_deletes(cluster: Callable[..., Any]) -> None:
    c = await cluster(NAMESPACES)
    await c.create("namespaces", namespace())
    await c.update("namespaces", namespace(finalizers=[]), subresource="finalize")
    assert (await c.delete("namespaces", "n"))["status"]["phase"] == "Terminating"
    await c.get("namespaces", "n")
    await c.delete("namespaces", "n")
    with pytest.raises(StatusError, match="not found"):
        await c.get("namespaces", "n")
