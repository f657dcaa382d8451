"""The faults with which a request or a call is compared, of many."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.faults.fault import Call, Fault, Match, Met, spec_of
from steersman.faults.fault_index import MOST_KEYS
from steersman.faults.fault_set import MOST_FAULTS, FaultSet
from steersman.faults.patterns import Patterns, ResourcePatterns
from steersman.machinery.identity.action import Action

VERBS = ("get", "create", "update")
GROUPS = ("", "apps")
RESOURCES = ("pods", "deployments")
SUBRESOURCES = ("", "status")

ACTIONS = st.builds(
    Action,
    verb=st.sampled_from(VERBS),
    group=st.sampled_from(GROUPS),
    version=st.just("v1"),
    resource=st.sampled_from(RESOURCES),
    subresource=st.sampled_from(SUBRESOURCES),
)
RESOURCE_PATTERNS = (
    "pods",
    "pods/status",
    "deployments",
    "deployments.apps",
    "deployments.apps/status",
    "*",
    "*/status",
)
SPECS = st.builds(
    lambda verbs, resources, skip, times: {
        "match": {"verbs": verbs, "resources": resources},
        "when": {"skip": skip, "times": times},
        "effect": {"cut": True},
    },
    st.lists(st.sampled_from((*VERBS, "*", "up*")), max_size=2),
    st.lists(st.sampled_from((*RESOURCE_PATTERNS, "pod*")), max_size=3),
    st.integers(0, 2),
    st.integers(0, 2),
)
CHANGES = st.tuples(st.sampled_from("abc"), st.none() | SPECS)


def met(action: Action) -> Met:
    return Met(action, "alice", (), "kubectl", "x")


class Asked:
    """Number of faults that were compared with a request or a call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("hits", "hits_call", "silences", "delays_sync"):
            monkeypatch.setattr(Fault, name, self._counted(getattr(Fault, name)))

    def _counted(self, function: Any) -> Any:
        def counting(*arguments: Any) -> Any:
            self.count += 1
            return function(*arguments)

        return counting


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def full(spec: dict[str, Any]) -> FaultSet:
    """Return a set with as many faults as there may be, but for one; "NUMBER" in names is the number of each."""
    faults = FaultSet()
    faults.on_nodes = lambda: None
    for number in range(MOST_FAULTS - 1):
        match = {key: [each.replace("NUMBER", str(number)) for each in found] for key, found in spec["match"].items()}
        faults.add(f"other-{number}", spec_of({**spec, "match": match}))
    return faults


@pytest.mark.parametrize(
    "match",
    [
        {"resources": ["resourceNUMBER"]},
        {"resources": ["configmaps.example.com", "configmaps/status"]},
        {"resources": ["configmaps"], "verbs": ["update", "delete"]},
        {"resources": ["*"], "verbs": ["update"]},
        {"verbs": ["update"]},
        {"webhooks": ["*"]},
        {"nodes": ["*"]},
    ],
)
def test_a_request_is_compared_only_with_faults_of_its_resource_and_verb(asked: Asked, match: dict[str, Any]) -> None:
    effect: dict[str, Any] = {"node": {"silent": True}} if "nodes" in match else {"cut": True}
    faults = full({"match": match, "effect": effect})
    create = met(Action("create", "", "v1", "configmaps"))
    assert faults.choose(create) is None
    assert asked.count == 0
    own = faults.add("own", spec_of({"match": {"resources": ["configmaps"]}, "effect": {"cut": True}}))
    assert faults.choose(create) is own
    assert asked.count == 1


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (Call("webhooks", ("a/b", "a", "b")), {"webhooks": ["otherNUMBER", "c/b"]}),
        (Call("conversions", ("a",)), {"webhooks": ["a", "*"]}),
        (Call("api_services", ("a",)), {"resources": ["pods"]}),
    ],
)
def test_a_call_is_compared_only_with_faults_of_its_names(asked: Asked, call: Call, match: dict[str, Any]) -> None:
    faults = full({"match": match, "effect": {"cut": True}})
    assert faults.choose_for_call(call) is None
    assert asked.count == 0


def test_a_kubelet_is_compared_only_with_faults_of_its_node(asked: Asked) -> None:
    faults = full({"match": {"nodes": ["nodeNUMBER"]}, "effect": {"node": {"silent": True}}})
    assert not faults.is_silent("other")
    assert asked.count == 0
    assert faults.is_silent("node7")
    assert asked.count == 1


def test_a_fault_with_several_names_of_a_call_is_asked_once(asked: Asked) -> None:
    faults = FaultSet()
    names = ["a", "b", "a/b"]
    fault = faults.add("a", spec_of({"match": {"webhooks": names}, "when": {"skip": 1}, "effect": {"cut": True}}))
    call = Call("webhooks", ("a/b", "a", "b"))
    assert faults.choose_for_call(call) is None
    assert faults.choose_for_call(call) is fault
    assert (fault.matched, fault.injected, asked.count) == (2, 1, 2)


def test_a_fault_has_few_keys() -> None:
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"] * 8
    many = Match(resources=[f"resource{number}/status" for number in range(MOST_KEYS)], verbs=verbs)
    fault = FaultSet().add(
        "a", spec_of({"match": {"resources": many.resources, "verbs": verbs}, "effect": {"cut": True}})
    )
    assert len(fault.keys) == MOST_KEYS
    assert not ResourcePatterns(["pods", "*"]).exact
    assert not Patterns(["get", "g*"]).exact


@given(st.lists(CHANGES, max_size=8), st.lists(ACTIONS, max_size=12))
def test_the_same_faults_hit_as_if_each_was_asked(changes: list[tuple[str, Any]], actions: list[Action]) -> None:
    faults = FaultSet()
    asked_all: dict[str, tuple[Fault, Fault]] = {}
    for name, spec in changes:
        asked_all.pop(name, None)
        if spec is None:
            faults.remove(name)
        else:
            asked_all[name] = Fault(name, spec_of(spec), 0.0), faults.add(name, spec_of(spec))
    for action in actions:
        expected = next((indexed for each, indexed in asked_all.values() if each.hits(met(action), 0.0)), None)
        assert faults.choose(met(action)) is expected
    for each, indexed in asked_all.values():
        assert (each.matched, each.injected) == (indexed.matched, indexed.injected)
