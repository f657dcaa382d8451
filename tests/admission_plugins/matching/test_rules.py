"""Tests of rules: matched requests, and the matched resource."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import CREATE, UPDATE, Attributes, Operation
from steersman.admission_plugins.matching.rules import Entry, RuleIndex, is_exempt
from steersman.api.admissionregistration.v1 import NamedRuleWithOperations, RuleWithOperations
from steersman.authentication.user import UserInfo
from steersman.catalogue.rest_mapper import RESTMapper
from steersman.controlplane.resources import KUBE_API
from steersman.endpoints.discovery import served_versions
from steersman.machinery.identity.action import Action
from steersman.machinery.identity.schema import GroupVersionKind

ME = UserInfo("me")


@pytest.fixture(scope="module")
def mapper() -> RESTMapper:
    restmapper = RESTMapper()
    for resource in KUBE_API:
        for each in served_versions(resource):
            restmapper.add(each)
    return restmapper


def rule(**members: Any) -> RuleWithOperations:
    everything = {"operations": ["*"], "api_groups": ["*"], "api_versions": ["*"], "resources": ["*/*"]}
    return RuleWithOperations(**everything | members)


def named_rule(*names: str, **members: Any) -> NamedRuleWithOperations:
    everything = {"operations": ["*"], "api_groups": ["*"], "api_versions": ["*"], "resources": ["*"]}
    return NamedRuleWithOperations(**everything | members, resource_names=list(names))


def request(
    resource: str,
    *,
    group: str = "",
    version: str = "v1",
    subresource: str = "",
    namespace: str = "default",
    kind: str = "Thing",
    name: str = "x",
    operation: Operation = CREATE,
) -> Attributes:
    action = Action("create", group, version, resource, subresource, namespace, name)
    return Attributes(operation, ME, action, GroupVersionKind(group, version, kind), name)


def is_matched(mapper: RESTMapper, asked: RuleWithOperations, attributes: Attributes) -> bool:
    return bool(RuleIndex([Entry("it", [asked])], mapper).matching(attributes))


@pytest.mark.parametrize(
    ("members", "met"),
    [
        ({}, True),
        ({"operations": ["UPDATE", "CREATE"]}, True),
        ({"operations": ["UPDATE"]}, False),
        ({"api_groups": ["apps"]}, False),
        ({"api_groups": ["", "apps"]}, True),
        ({"api_versions": ["v2"]}, False),
        ({"resources": ["pods"]}, True),
        ({"resources": ["*"]}, True),
        ({"resources": ["pods/*"]}, True),
        ({"resources": ["pods/status"]}, False),
        ({"resources": ["*/status"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"scope": "*"}, True),
    ],
)
def test_what_a_rule_says_of_a_pod(mapper: RESTMapper, members: dict[str, Any], met: bool) -> None:
    assert is_matched(mapper, rule(**members), request("pods")) is met


@pytest.mark.parametrize(
    ("resources", "met"),
    [(["*"], False), (["pods"], False), (["pods/*"], True), (["*/status"], True), (["*/*"], True), (["*/log"], False)],
)
def test_subresources_are_matched_as_such_only(mapper: RESTMapper, resources: list[str], met: bool) -> None:
    assert is_matched(mapper, rule(resources=resources), request("pods", subresource="status")) is met


def test_namespaces_are_in_no_namespace(mapper: RESTMapper) -> None:
    asked = request("namespaces", namespace="it", name="it")  # as upstream, a Namespace is in itself
    assert is_matched(mapper, rule(scope="Cluster"), asked)
    assert not is_matched(mapper, rule(scope="Namespaced"), asked)


@pytest.mark.parametrize("equivalent", [True, False])
def test_another_version_of_the_same_objects(mapper: RESTMapper, equivalent: bool) -> None:
    entry = Entry("it", [rule(api_groups=["autoscaling"], api_versions=["v1"])], equivalent=equivalent)
    asked = request("horizontalpodautoscalers", group="autoscaling", version="v2", kind="HorizontalPodAutoscaler")
    found = RuleIndex([entry], mapper).matching(asked)
    if not equivalent:
        assert not found
        return
    ((_, seen),) = found
    assert (seen.version, seen.kind) == ("v1", GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler"))


def test_a_rule_for_the_own_version_comes_before_earlier_ones_for_others(mapper: RESTMapper) -> None:
    rules = [rule(api_versions=["v1"]), rule(api_versions=["v2"])]
    asked = request("horizontalpodautoscalers", group="autoscaling", version="v2")
    ((_, seen),) = RuleIndex([Entry("it", rules)], mapper).matching(asked)
    assert seen.version == "v2"


def test_events_are_the_same_in_both_groups(mapper: RESTMapper) -> None:
    entry = Entry("it", [rule(api_groups=["events.k8s.io"], resources=["events"])])
    ((_, seen),) = RuleIndex([entry], mapper).matching(request("events", kind="Event"))
    assert (seen.group, seen.kind) == ("events.k8s.io", GroupVersionKind("events.k8s.io", "v1", "Event"))


def test_names_and_exclusions_of_policies(mapper: RESTMapper) -> None:
    by_name = Entry("named", [named_rule("a", "b")])
    but_one = Entry("all but one", [named_rule()], excluded=[named_rule("a")])
    without = Entry("everything", (), all_without_rules=True)
    index = RuleIndex([by_name, but_one, without], mapper)
    assert [value for value, _ in index.matching(request("pods", name="a"))] == ["named", "everything"]
    assert [value for value, _ in index.matching(request("pods", name="b"))] == ["named", "all but one", "everything"]
    assert [value for value, _ in index.matching(request("pods", name="c"))] == ["all but one", "everything"]


def test_what_is_remembered_is_forgotten_when_other_resources_are_served() -> None:
    mapper = RESTMapper()
    autoscalers = next(each for each in KUBE_API if each.plural == "horizontalpodautoscalers")
    versions = {each.version: each for each in served_versions(autoscalers)}
    mapper.add(versions["v2"])
    index = RuleIndex([Entry("it", [rule(api_versions=["v1"])])], mapper)
    asked = request("horizontalpodautoscalers", group="autoscaling", version="v2", operation=UPDATE)
    assert not index.matching(asked)
    mapper.add(versions["v1"])
    assert len(index.matching(asked)) == 1
    mapper.remove(versions["v1"])
    assert not index.matching(asked)


def test_configurations_of_admission_are_exempt() -> None:
    for kind, exempt in (
        ("ValidatingWebhookConfiguration", True),
        ("MutatingAdmissionPolicyBinding", True),
        ("Something", False),
    ):
        asked = request("things", group="admissionregistration.k8s.io", kind=kind, namespace="")
        assert is_exempt(asked) is exempt
