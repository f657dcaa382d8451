"""Tests of the admission chain: called plugins, their order, and refusals."""

from __future__ import annotations

import pytest

from steersman.admission.interface import (
    CONNECT,
    CREATE,
    DELETE,
    OBJECT_ALONE,
    UPDATE,
    Attributes,
    Chain,
    Operation,
    Plugin,
    WriteKind,
)
from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import UserInfo
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupResource, GroupVersionKind


def attributes(operation: Operation = CREATE, **more: object) -> Attributes:
    action = Action(operation.lower(), "", "v1", "configmaps", namespace="ns", name="a")
    fields = {"action": action, "name": "a", "kind": GroupVersionKind("", "v1", "ConfigMap"), **more}
    return Attributes(operation, UserInfo("alice"), **fields)  # type: ignore[arg-type]


class RecordingPlugin(Plugin):
    def __init__(self, name: str, calls: list[str], *operations: Operation, refuse: str = "") -> None:
        self.name = name
        self.operations = frozenset(operations)
        self.mutates = self.validates = True
        self._calls = calls
        self._refuse = refuse

    async def _say(self, what: str, given: Attributes) -> None:
        self._calls.append(f"{self.name} {what}")
        if self._refuse == what:
            raise given.forbid("no")

    async def admit(self, attributes: Attributes) -> None:
        await self._say("admit", attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self._say("validate", attributes)


async def test_plugins_are_asked_in_their_order_about_what_they_handle() -> None:
    calls: list[str] = []
    chain = Chain(
        (
            RecordingPlugin("b", calls, CREATE),
            RecordingPlugin("a", calls, CREATE, UPDATE),
            RecordingPlugin("c", calls, DELETE),
        )
    )
    await chain.admit(attributes())
    await chain.validate(attributes())
    await chain.admit(attributes(UPDATE))
    assert calls == ["b admit", "a admit", "b validate", "a validate", "a admit"]
    assert [chain.handles(each) for each in (CREATE, UPDATE, DELETE, CONNECT)] == [True, True, True, False]


async def test_the_first_refusal_ends_it() -> None:
    calls: list[str] = []
    chain = Chain((RecordingPlugin("a", calls, CREATE, refuse="validate"), RecordingPlugin("b", calls, CREATE)))
    await chain.admit(attributes())
    with pytest.raises(StatusError):
        await chain.validate(attributes())
    assert calls == ["a admit", "b admit", "a validate"]


async def test_a_plugin_that_names_resources_is_asked_about_no_other() -> None:
    calls: list[str] = []
    everything, named = RecordingPlugin("a", calls, CREATE), RecordingPlugin("b", calls, CREATE)
    named.resources = frozenset({GroupResource("", "secrets")})
    chain = Chain((named, everything))
    await chain.admit(attributes())
    await chain.admit(attributes(action=Action("create", resource="secrets")))
    assert calls == ["a admit", "b admit", "a admit"]
    assert Chain((named,)).handles(CREATE)


async def test_a_plugin_is_only_asked_for_what_it_does() -> None:
    calls: list[str] = []
    only_validates = RecordingPlugin("a", calls, CREATE)
    only_validates.mutates = False
    neither = RecordingPlugin("b", calls, UPDATE)
    neither.mutates = neither.validates = False
    chain = Chain((only_validates, neither))
    await chain.admit(attributes())
    await chain.validate(attributes())
    assert calls == ["a validate"]
    assert not chain.handles(UPDATE)


async def test_a_plugin_that_names_subresources_is_asked_about_no_other() -> None:
    calls: list[str] = []
    of_objects, of_scales = RecordingPlugin("a", calls, UPDATE), RecordingPlugin("b", calls, UPDATE)
    of_objects.subresources, of_scales.subresources = OBJECT_ALONE, frozenset({"scale"})
    chain = Chain((of_objects, of_scales))
    await chain.admit(attributes(UPDATE))
    await chain.validate(attributes(UPDATE, action=Action("update", resource="configmaps", subresource="scale")))
    assert calls == ["a admit", "b validate"]


class PluginWithoutWork(RecordingPlugin):
    """A plugin that has work only while `awake` is set, and only for validation."""

    awake = False

    def has_work(self, writes: WriteKind, *, mutating: bool) -> bool:
        return self.awake and not mutating


async def test_a_plugin_without_work_is_not_asked_until_it_has_some() -> None:
    calls: list[str] = []
    resting = PluginWithoutWork("a", calls, CREATE)
    chain, another = Chain((resting, RecordingPlugin("b", calls, CREATE))), Chain((resting,))
    for awake, told in (
        (False, ["b validate"]),
        (True, ["a validate", "b validate", "a validate"]),
        (False, ["b validate"]),
    ):
        resting.awake = awake
        resting.notify_work_changed()
        await chain.validate(attributes())
        await another.validate(attributes())
        assert calls == told
        calls.clear()
    await chain.admit(attributes())
    assert calls == ["b admit"]


async def test_however_many_kinds_of_writes_there_are_all_are_judged() -> None:
    calls: list[str] = []
    chain = Chain((RecordingPlugin("a", calls, CREATE),))
    for number in range(1500):
        await chain.validate(attributes(action=Action("create", group=f"g{number}", resource="things")))
    await chain.validate(attributes(action=Action("create", group="g0", resource="things")))
    assert len(calls) == 1501


@pytest.mark.parametrize(
    ("metadata", "name", "named"),
    [
        (None, "url", "url"),
        (None, "", "Unknown"),
        (ObjectMeta(name="own"), "url", "url"),
        (ObjectMeta(name="own"), "", "own"),
        (ObjectMeta(), "url", "url"),
        (ObjectMeta(generate_name="made-"), "", "made-"),
        (ObjectMeta(), "", "Unknown"),
    ],
)
def test_a_refusal_names_the_object(metadata: ObjectMeta | None, name: str, named: str) -> None:
    obj = None if metadata is None else ConfigMap(metadata=metadata)
    error = attributes(obj=obj, name=name).forbid("why not")
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message == f'configmaps "{named}" is forbidden: why not'
