"""Pods, and admission attributes of writes, for tests of admission plugins."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import CREATE, UPDATE, Attributes, Chain, Operation, Plugin
from steersman.api.core.v1 import Pod
from steersman.authentication.user import UserInfo
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupVersionKind

CONTAINER = {"name": "c", "image": "i"}


def make_pod(spec: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    """Return a pod `p` in the namespace `ns`, with one container unless `spec` is given."""
    return from_plain(
        Pod,
        {"metadata": {"name": "p", "namespace": "ns", **metadata}, "spec": {"containers": [CONTAINER], **(spec or {})}},
    )


def a_write(
    obj: Any,
    operation: Operation = CREATE,
    *,
    resource: str = "pods",
    group: str = "",
    subresource: str = "",
    namespace: str | None = None,
    **more: Any,
) -> Attributes:
    """Return the attributes of a write of `obj`; `old` is the object that it replaces."""
    given = {"name": obj.metadata.name, "obj": obj, **more}
    action = Action(
        operation.lower(),
        group,
        "v1",
        resource,
        subresource,
        obj.metadata.namespace if namespace is None else namespace,
        given["name"],
    )
    kind = GroupVersionKind(group, "v1", type(obj).__name__)
    return Attributes(operation, UserInfo("alice"), action, kind, **given)


def an_update(new: Any, old: Any, **more: Any) -> Attributes:
    return a_write(new, UPDATE, old=old, **more)


async def admitted(plugin: Plugin, record: Attributes) -> Attributes:
    """Run `admit` and `validate` of a plugin, and return the attributes."""
    chain = Chain((plugin,))
    await chain.admit(record)
    await chain.validate(record)
    return record


async def refusal(plugin: Plugin, record: Attributes) -> StatusError:
    """Return the error of a plugin, which must refuse the write."""
    with pytest.raises(StatusError) as caught:
        await admitted(plugin, record)
    return caught.value
