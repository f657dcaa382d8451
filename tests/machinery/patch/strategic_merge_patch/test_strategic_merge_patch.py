"""Strategic merge patches: what upstream's library makes of them, and laws that hold for all.

data/strategic_merge_patches.json has what k8s.io/apimachinery 1.36 answered for each of its cases.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.apps.v1 import ControllerRevision, Deployment
from steersman.api.core.v1 import Secret, Service, ServiceAccount
from steersman.api.policy.v1 import PodDisruptionBudget
from steersman.machinery.codec.go_types import struct_of
from steersman.machinery.codec.serializer import decode_as_sent
from steersman.machinery.errors.go_print import go_value
from steersman.machinery.errors.status import StatusError
from steersman.machinery.patch.strategic_merge_patch import apply

RECORDED = json.loads(Path(__file__).with_name("recorded_patches.json").read_bytes())
DOCUMENTS = RECORDED.pop("documents")
KINDS = {
    each.__name__: each
    for each in (ControllerRevision, Deployment, PodDisruptionBudget, Secret, Service, ServiceAccount)
}


def cases(section: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(each, id=each["about"]) for each in RECORDED[section]])


def as_sent(value: Any) -> Any:
    return decode_as_sent(json.dumps(value).encode())


def patched(document: Any, patch: Any, kind: type = Deployment) -> Any:
    return apply(as_sent(document), as_sent(patch), struct_of(kind))


def judge(case: dict[str, Any]) -> None:
    """Holds our answer against the recorded one, and what an error would show of the patch, too."""
    document = DOCUMENTS[case["document"]] if isinstance(case["document"], str) else case["document"]
    patch = as_sent(case["patch"])
    if "error" in case:
        with pytest.raises(StatusError) as caught:
            apply(as_sent(document), patch, struct_of(KINDS[case["kind"]]))
        assert caught.value.code == case["code"]
        if case["code"] == 422:
            assert caught.value.message == "the server rejected our request due to an error in our request"
        else:
            assert caught.value.message == case["error"]
            assert caught.value.reason == ("BadRequest" if case["code"] == 400 else "")
    else:
        assert apply(as_sent(document), patch, struct_of(KINDS[case["kind"]])) == case["result"]
        assert go_value(patch) == case["left"]


@cases("maps")
def test_objects(case: Any) -> None:
    judge(case)


@cases("retain_keys")
def test_retain_keys(case: Any) -> None:
    judge(case)


@cases("merged_lists")
def test_lists_with_a_merge_key(case: Any) -> None:
    judge(case)


@cases("item_directives")
def test_patch_directives_of_items(case: Any) -> None:
    judge(case)


@cases("primitive_lists")
def test_lists_of_text(case: Any) -> None:
    judge(case)


@cases("set_element_order")
def test_set_element_order(case: Any) -> None:
    judge(case)


def test_every_recorded_section_is_judged() -> None:
    assert set(RECORDED) == {
        "maps",
        "retain_keys",
        "merged_lists",
        "item_directives",
        "primitive_lists",
        "set_element_order",
    }


# where kube-apiserver breaks off the connection


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": [{"name": {}}]},
        {"containers": [{"name": []}, {"name": "one"}]},
        {"$setElementOrder/tolerations": [{"key": "k"}], "tolerations": [{"key": "k"}]},
        {"$retainKeys": [{}]},
    ],
)
def test_what_go_cannot_compare_is_refused(patch: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as caught:
        patched(DOCUMENTS["dep"], {"spec": {"template": {"spec": patch}}})
    assert caught.value.code == 400
    assert "neither text nor a number" in caught.value.message


def test_a_list_that_starts_with_null_is_refused() -> None:
    with pytest.raises(StatusError) as caught:
        patched({"metadata": {"finalizers": []}}, {"metadata": {"finalizers": [None]}})
    assert caught.value.code == 400


def test_a_patch_that_is_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(50_000):
        deep = {"a": deep}
    with pytest.raises(StatusError) as caught:
        apply({}, {"spec": deep}, struct_of(Deployment))
    assert (caught.value.code, caught.value.message) == (400, "the patch is nested too deeply")
    while deep:  # or else its end is as deep
        deep = deep["a"]


def test_long_lists_take_no_longer_than_they_must() -> None:
    names = [f"example.com/{number}" for number in range(20_000)]
    directives = {"$deleteFromPrimitiveList/finalizers": names[:10], "$setElementOrder/finalizers": names[::-1]}
    found = patched({"metadata": {"finalizers": names}}, {"metadata": {**directives, "finalizers": names[::-1]}})
    assert found["metadata"]["finalizers"] == names[:9:-1]
    items = [{"name": name} for name in names]
    document = {"spec": {"template": {"spec": {"containers": items}}}}
    deletes = {"spec": {"template": {"spec": {"containers": [{**each, "$patch": "delete"} for each in items]}}}}
    assert patched(document, deletes)["spec"]["template"]["spec"]["containers"] == []


# laws

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
SCALARS = st.sampled_from(["x", "y", "z", "", "1"])
ENV = st.lists(st.tuples(NAMES, SCALARS), unique_by=lambda pair: pair[0], max_size=5).map(
    lambda pairs: [{"name": name, "value": value} for name, value in pairs]
)
CONTAINER = st.fixed_dictionaries(
    {"name": NAMES},
    optional={"image": SCALARS, "args": st.lists(SCALARS, min_size=1, max_size=3), "env": ENV.filter(bool)},
)
CONTAINERS = st.lists(CONTAINER, unique_by=lambda each: each["name"], min_size=1, max_size=5)
LABELS = st.dictionaries(NAMES, SCALARS, min_size=1)
FINALIZERS = st.lists(NAMES, unique=True, min_size=1)
DEPLOYMENTS = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"template": st.fixed_dictionaries({"spec": st.fixed_dictionaries({"containers": CONTAINERS})})},
            optional={"replicas": st.integers(0, 3)},
        )
    },
    optional={"metadata": st.fixed_dictionaries({}, optional={"labels": LABELS, "finalizers": FINALIZERS})},
)
KEYS = {"containers": "name", "env": "name"}


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The patch that a client would send to make one document the other, with all directives it may need."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, new in after.items():
        old = before.get(name)
        if old == new:
            continue
        if isinstance(new, dict) and isinstance(old, dict):
            patch[name] = difference(old, new)
        elif isinstance(new, list) and isinstance(old, list) and name == "finalizers":
            patch[f"$setElementOrder/{name}"] = new
            patch[f"$deleteFromPrimitiveList/{name}"] = [each for each in old if each not in new]
            patch[name] = [each for each in new if each not in old]
        elif isinstance(new, list) and isinstance(old, list) and name in KEYS:
            patch |= difference_of_items(name, KEYS[name], old, new)
        else:
            patch[name] = new
    return patch


def difference_of_items(name: str, key: str, before: list[Any], after: list[Any]) -> dict[str, Any]:
    old = {each[key]: each for each in before}
    changes = [{key: each[key], **difference(old.get(each[key], {}), each)} for each in after]
    gone = [{key: each, "$patch": "delete"} for each in old if each not in [kept[key] for kept in after]]
    return {f"$setElementOrder/{name}": [{key: each[key]} for each in after], name: changes + gone}


@given(DEPLOYMENTS, DEPLOYMENTS)
def test_a_difference_applied_gives_what_it_was_made_for(before: Any, after: Any) -> None:
    assert patched(before, difference(before, after)) == after


@given(DEPLOYMENTS, DEPLOYMENTS)
def test_a_patch_applied_again_changes_nothing(before: Any, after: Any) -> None:
    patch = difference(before, after)
    once = patched(before, patch)
    assert patched(once, patch) == once


@given(DEPLOYMENTS, DEPLOYMENTS)
def test_a_document_is_a_patch_that_applied_again_changes_nothing(document: Any, other: Any) -> None:
    once = patched(document, other)
    assert patched(once, other) == once


@given(DEPLOYMENTS)
def test_an_empty_patch_and_the_document_itself_change_nothing(document: Any) -> None:
    assert patched(document, {}) == document
    assert patched(document, document) == document


@given(CONTAINERS, CONTAINERS, st.permutations(["a", "b", "c", "d", "e"]))
def test_the_order_given_is_that_of_the_result(before: Any, changes: Any, order: Any) -> None:
    directive = {"$setElementOrder/containers": [{"name": name} for name in order]}
    sent = sorted(changes, key=lambda each: order.index(each["name"]))
    patch = {"spec": {"template": {"spec": {**directive, "containers": sent}}}}
    document = {"spec": {"template": {"spec": {"containers": before}}}}
    names = [each["name"] for each in patched(document, patch)["spec"]["template"]["spec"]["containers"]]
    assert names == sorted(names, key=order.index)
    assert set(names) == {each["name"] for each in before} | {each["name"] for each in changes}


@given(CONTAINERS, CONTAINERS)
def test_items_of_the_patch_and_of_the_server_keep_their_orders(before: Any, changes: Any) -> None:
    document = {"spec": {"template": {"spec": {"containers": before}}}}
    found = patched(document, {"spec": {"template": {"spec": {"containers": changes}}}})
    names = [each["name"] for each in found["spec"]["template"]["spec"]["containers"]]
    sent = [each["name"] for each in changes]
    assert [name for name in names if name in sent] == sent
    alone = [each["name"] for each in before if each["name"] not in sent]
    assert [name for name in names if name not in sent] == alone


@given(CONTAINERS, NAMES)
def test_what_is_deleted_is_gone_and_nothing_else(before: Any, name: Any) -> None:
    document = {"spec": {"template": {"spec": {"containers": before}}}}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": name, "$patch": "delete"}]}}}}
    found = patched(document, patch)["spec"]["template"]["spec"]["containers"]
    assert found == [each for each in before if each["name"] != name]


@given(DEPLOYMENTS, LABELS)
def test_a_replaced_object_is_the_one_sent(document: Any, labels: Any) -> None:
    patch = {"metadata": {"labels": {"$patch": "replace", **labels}}}
    before = copy.deepcopy(document)
    before.setdefault("metadata", {}).setdefault("labels", {})
    assert patched(before, patch)["metadata"]["labels"] == labels
