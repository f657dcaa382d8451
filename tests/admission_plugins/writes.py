"""Writes for admission plugins, and authorizers for tests."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from steersman.admission.interface import CREATE, Attributes, Operation
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes as Question
from steersman.authorization.interface import Decision, Verdict
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.rest.resource import Resource

ALICE = UserInfo("alice")


def write_of(resource: Resource[Any], obj: Any, operation: Operation = CREATE, **more: Any) -> Attributes:
    """Return the attributes of a write of `obj` by alice, with the name in its metadata."""
    metadata = obj.metadata
    fields = {"namespace": metadata.namespace, "subresource": "", "name": metadata.name, "obj": obj, **more}
    action = Action(
        operation.lower(),
        resource.group,
        resource.version,
        resource.plural,
        fields.pop("subresource"),
        fields.pop("namespace"),
        fields["name"],
    )
    return Attributes(operation, ALICE, action, resource.kind.gvk, **fields)


async def refusal(work: Awaitable[None]) -> str:
    """Return the text of a plugin's 403."""
    with pytest.raises(StatusError) as caught:
        await work
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    return caught.value.message


class Allowing:
    """An authorizer that allows these (verb, resource, name), and records its requests."""

    def __init__(self, *allowed: tuple[str, str, str]) -> None:
        self._allowed = allowed
        self.asked: list[Question] = []

    def authorize(self, attributes: Question) -> Verdict:
        self.asked.append(attributes)
        action = attributes.action
        resource = f"{action.resource}/{action.subresource}" if action.subresource else action.resource
        allowed = (action.verb, resource, action.name) in self._allowed
        return Verdict(Decision.ALLOW if allowed else Decision.NO_OPINION)
