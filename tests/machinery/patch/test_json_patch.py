"""JSON Patch: every operation, its failures, its limits, and that documents are never changed in place."""

from __future__ import annotations

import copy
import json
from threading import Thread, current_thread, main_thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.errors.status import StatusError
from steersman.machinery.patch import json_patch
from steersman.machinery.patch.json_patch import PatchError
from steersman.work.offloading import offload


def patched(document: Any, *operations: Any, **limits: Any) -> Any:
    """The outcome, after seeing to it that neither the document nor the patch was changed."""
    before = copy.deepcopy((document, operations))
    result = json_patch.apply(document, operations, **limits)
    assert (document, operations) == before
    return result


def op(kind: Any, path: Any, **members: Any) -> Any:
    return {"op": kind, "path": path, **{name.rstrip("_"): value for name, value in members.items()}}


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({"a": 1}, op("add", "/b", value=2), {"a": 1, "b": 2}),
        ({"a": 1}, op("add", "/a", value=[2]), {"a": [2]}),
        ({"a": 1}, op("add", "/b"), {"a": 1, "b": None}),
        ({"a": [1, 2]}, op("add", "/a/0", value=0), {"a": [0, 1, 2]}),
        ({"a": [1, 2]}, op("add", "/a/2", value=3), {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, op("add", "/a/-", value=3), {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, op("add", "/a/-1", value=3), {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, op("add", "/a/-2", value=3), {"a": [1, 3, 2]}),
        ({"a/b": {"~": 1}}, op("add", "/a~1b/~0", value=2), {"a/b": {"~": 2}}),
        ({"~1": 1}, op("remove", "/~01"), {}),
        ({"": 1}, op("remove", "/"), {}),
        ({"a": [1, 2]}, op("remove", "/a/0"), {"a": [2]}),
        ({"a": [1, 2]}, op("remove", "/a/-1"), {"a": [1]}),
        ({"a": 1}, op("replace", "/a", value=2), {"a": 2}),
        ({"a": 1}, op("replace", "/b", value=2), {"a": 1, "b": 2}),
        ({"a": [1, [2]]}, op("replace", "/a/1/0", value=3), {"a": [1, [3]]}),
        ({"a": 1}, op("replace", "", value={"b": 2}), {"b": 2}),
        ({"a": 1}, op("move", "/b", from_="/a"), {"b": 1}),
        ({"a": [1, 2, 3]}, op("move", "/a/0", from_="/a/2"), {"a": [3, 1, 2]}),
        ({"a": {"x": [1]}}, op("copy", "/b", from_="/a"), {"a": {"x": [1]}, "b": {"x": [1]}}),
        ({}, op("copy", "/b", from_="/absent"), {"b": None}),
        ({"a": [1, {"b": None}]}, op("test", "/a", value=[1, {"b": None}]), {"a": [1, {"b": None}]}),
        ({"a": 1}, op("test", "", value={"a": 1}), {"a": 1}),
        ({}, op("test", "/a", value=None), {}),
        ({}, op("test", "/a"), {}),
        ({"a": 0.5}, op("test", "/a", value=0.5), {"a": 0.5}),
    ],
)
def test_operation_applies(document: dict[str, Any], operation: Any, expected: dict[str, Any]) -> None:
    assert patched(document, operation) == expected


MISSING = "missing value"
NO_KEY = "Unable to remove nonexistent key"
NO_SOURCE = "doc is missing from path"
UNDECODABLE = "error decoding patch: json: cannot unmarshal"


@pytest.mark.parametrize(
    ("document", "operation", "error"),
    [
        ({}, op("add", "/a/b", value=1), f'add operation does not apply: doc is missing path: "/a/b": {MISSING}'),
        ({}, op("add", "", value=1), f'add operation does not apply: doc is missing path: "": {MISSING}'),
        ({"a": None}, op("add", "/a/b"), f'add operation does not apply: doc is missing path: "/a/b": {MISSING}'),
        ({"a": 1}, op("add", "/a/b"), f'add operation does not apply: doc is missing path: "/a/b": {MISSING}'),
        (
            {"a": []},
            op("add", "/a/1"),
            "error in add for path: '/a/1': Unable to access invalid index: 1: invalid index referenced",
        ),
        (
            {"a": []},
            op("add", "/a/x"),
            "error in add for path: '/a/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
        ),
        ({}, op("remove", "/a"), f"error in remove for path: '/a': Unable to remove nonexistent key: a: {MISSING}"),
        (
            {"a": [1]},
            op("remove", "/a/-2"),
            "error in remove for path: '/a/-2': Unable to access invalid index: -2: invalid index referenced",
        ),
        ({"a": []}, op("replace", "/a/0"), f"replace operation does not apply: doc is missing key: /a/0: {MISSING}"),
        ({}, op("replace", "/a/b"), f"replace operation does not apply: doc is missing path: /a/b: {MISSING}"),
        ({}, op("replace", "", value=1), "replace operation value must be object or array: %!w(<nil>)"),
        ({}, op("move", "/b", from_="/a"), f"error in move for path: 'a': {NO_KEY}: a: {MISSING}"),
        (
            {"a": {"b": 1}},
            op("move", "/a/b/c", from_="/a"),
            f"move operation does not apply: doc is missing destination path: /a/b/c: {MISSING}",
        ),
        ({}, op("copy", "/b", from_="/a/x"), f"copy operation does not apply: {NO_SOURCE}: /a/x: {MISSING}"),
        ({}, op("copy", "/b"), f"copy operation failed to decode from: operation, missing from field: {MISSING}"),
        ({}, {"op": "test"}, f"test operation failed to decode path: operation missing path field: {MISSING}"),
        ({"a": "v"}, op("test", "/a", value="wrong"), "testing value /a failed: test failed"),
        ({"a": 1}, op("test", "/a", value=True), "testing value /a failed: test failed"),
        ({"a": 1}, op("test", "/a", value=1.0), "testing value /a failed: test failed"),
        ({"a": [1]}, op("test", "/a", value=[1.0]), "testing value /a failed: test failed"),
        ({"a": 1}, op("test", "/a"), "testing value /a failed: test failed"),
        ({"a": {}}, op("test", "/a", value=[]), "testing value /a failed: test failed"),
        ({"a": {"b": 1}}, op("test", "/a", value={"b": 1, "c": 2}), "testing value /a failed: test failed"),
        ({}, op("frobnicate", "/a"), "Unexpected kind: frobnicate"),
        ({}, {"op": 5}, "Unexpected kind: unknown"),
        ({}, {}, "Unexpected kind: unknown"),
    ],
)
def test_failing_operation_says_why(document: dict[str, Any], operation: Any, error: str) -> None:
    before = copy.deepcopy(document)
    with pytest.raises(PatchError) as raised:
        json_patch.apply(document, [operation])
    assert str(raised.value) == error
    assert document == before


def test_failure_of_a_later_operation_leaves_the_document_alone() -> None:
    document = {"a": {"b": [1]}}
    with pytest.raises(PatchError):
        json_patch.apply(document, [op("add", "/a/b/-", value=2), op("test", "/a", value={})])
    assert document == {"a": {"b": [1]}}


def test_parts_that_do_not_change_are_shared_not_copied() -> None:
    document: dict[str, Any] = {"big": {"x": 1}, "small": {"y": {"z": 1}, "other": {}}}
    result = patched(document, op("replace", "/small/y/z", value=2))
    assert result["big"] is document["big"]
    assert result["small"]["other"] is document["small"]["other"]
    assert result["small"]["y"] is not document["small"]["y"]


def test_copied_part_changes_alone() -> None:
    result = patched({"a": {"x": [1]}}, op("copy", "/b", from_="/a"), op("add", "/b/x/-", value=2))
    assert result == {"a": {"x": [1]}, "b": {"x": [1, 2]}}
    result = patched(
        {"a": {"x": [1]}}, op("add", "/a/x/-", value=2), op("copy", "/b", from_="/a"), op("remove", "/a/x/0")
    )
    assert result == {"a": {"x": [2]}, "b": {"x": [1, 2]}}


def test_value_of_an_operation_is_not_changed_by_later_ones() -> None:
    patched({}, op("add", "/a", value={"x": []}), op("add", "/a/x/-", value=1))
    assert patched({}, op("replace", "", value={"x": []}), op("add", "/x/-", value=1)) == {"x": [1]}


def test_copies_are_bounded_in_bytes() -> None:
    document = {"a": "x" * 8}
    copies = [op("copy", f"/{index}", from_="/a") for index in range(3)]
    assert len(patched(document, *copies, max_copy_bytes=30)) == 4
    with pytest.raises(PatchError) as raised:
        json_patch.apply(document, copies, max_copy_bytes=29)
    text = "Unable to complete the copy, the accumulated size increase of copy is 30, exceeding the limit 29"
    assert str(raised.value) == text


def test_deep_nesting_fails_cleanly() -> None:
    deep: dict[str, Any] = {}
    document = deep
    for _ in range(5000):
        deep["a"] = deep = {}
    with pytest.raises(PatchError, match="nested too deeply"):
        json_patch.apply({"x": document}, [op("test", "/x", value=copy_of_nesting(5000))])


def copy_of_nesting(depth: Any) -> Any:
    deep: dict[str, Any] = {}
    document = deep
    for _ in range(depth):
        deep["a"] = deep = {}
    return document


def test_many_operations_on_one_list_stay_fast() -> None:
    result = json_patch.apply({"a": []}, [op("add", "/a/-", value=index) for index in range(10_000)])
    assert result == {"a": list(range(10_000))}


@pytest.mark.parametrize(
    ("patch", "strict", "code", "message"),
    [
        ({}, True, 400, f"{UNDECODABLE} object into Go value of type []handlers.jsonPatchOp"),
        ({}, False, 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ("x", True, 400, f"{UNDECODABLE} string into Go value of type []handlers.jsonPatchOp"),
        ([1], True, 400, f"{UNDECODABLE} number into Go value of type handlers.jsonPatchOp"),
        ([[]], False, 400, "json: cannot unmarshal array into Go value of type jsonpatch.Operation"),
        ([{"op": 5}], True, 400, f"{UNDECODABLE} number into Go struct field jsonPatchOp.op of type string"),
        (
            [{"op": "test", "path": True}],
            True,
            400,
            f"{UNDECODABLE} bool into Go struct field jsonPatchOp.path of type string",
        ),
        (
            [{}] * 10_001,
            True,
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
    ],
)
def test_what_is_no_patch_is_refused(patch: Any, strict: bool, code: int, message: str) -> None:
    with pytest.raises(StatusError) as raised:
        json_patch.decode(patch, strict=strict)
    assert (raised.value.code, raised.value.message) == (code, message)


def test_unknown_members_are_told_only_when_strict() -> None:
    patch = [{"op": "add", "path": "/a", "value": {"extra": 1}, "extra": 1}, {"Op": "add"}]
    _, unknown = json_patch.decode(patch, strict=True)
    assert unknown == ['json patch unknown field "[0].extra"', 'json patch unknown field "[1].Op"']
    assert json_patch.decode(patch, strict=False) == (patch, [])


def test_null_is_a_patch_that_does_nothing() -> None:
    assert json_patch.decode(None, strict=True) == ((), [])
    with pytest.raises(PatchError, match=r"^Unexpected kind: unknown$"):
        json_patch.apply({}, json_patch.decode([None], strict=True)[0])


KEYS = st.text("ab/~0-", max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, JSON, max_size=4)


def pointer(*names: Any) -> Any:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


@given(DOCUMENTS, KEYS, JSON)
def test_what_was_added_is_found_by_test(document: Any, key: Any, value: Any) -> None:
    path = pointer(key)
    assert patched(document, op("add", path, value=value), op("test", path, value=value)) == {**document, key: value}


@given(DOCUMENTS.filter(bool), st.data(), KEYS)
def test_move_is_copy_and_remove(document: Any, data: Any, target: Any) -> None:
    source = data.draw(st.sampled_from(sorted(document)))
    moved = patched(document, op("move", pointer(target), from_=pointer(source)))
    if source == target:
        assert moved == document
    else:
        assert moved == patched(
            document, op("copy", pointer(target), from_=pointer(source)), op("remove", pointer(source))
        )


@given(JSON, JSON)
def test_equality_is_that_of_json(left: Any, right: Any) -> None:
    assert json_patch.equal(left, right) == (json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True))


NAMES = st.sampled_from(["a", "b", "0", "1", "-", "-1", "", "~0", "~1"])
POINTERS = st.lists(NAMES, max_size=3).map(lambda names: "".join(f"/{name}" for name in names))
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": POINTERS},
    optional={"from": POINTERS, "value": JSON},
)


@given(DOCUMENTS, st.lists(OPERATIONS, max_size=5))
def test_no_patch_changes_its_document_or_itself(document: Any, operations: Any) -> None:
    before = copy.deepcopy((document, operations))
    try:
        first = json_patch.apply(document, operations)
    except PatchError:
        assert (document, operations) == before
        return
    assert (document, operations) == before
    assert json_patch.apply(document, operations) == first


def test_what_operations_pass_through_has_its_members_sorted() -> None:
    document = {"kind": "K", "b": {"z": 1, "y": {"c": 1, "a": 2}}, "a": {"z": 1, "y": 2}, "t": [{"c": 1, "b": 2}]}
    found = patched(document, op("add", "/b/x", value={"q": 1, "p": 2}), op("test", "/t/0/b", value=2))
    assert list(found) == ["a", "b", "kind", "t"]
    assert (list(found["a"]), list(found["b"])) == (["z", "y"], ["x", "y", "z"])
    assert (list(found["b"]["x"]), list(found["b"]["y"]), list(found["t"][0])) == (["q", "p"], ["c", "a"], ["b", "c"])
    assert list(patched(document)) == list(document)


def test_a_copy_of_what_the_way_to_its_place_leads_through_has_its_members_sorted() -> None:
    result = patched({"spec": {"z": {"app": "x"}, "a": 1}}, op("copy", "/spec/z", from_="/spec"))
    assert json.dumps(result) == '{"spec": {"a": 1, "z": {"a": 1, "z": {"app": "x"}}}}'


async def test_what_copies_make_large_is_not_made_on_the_loop() -> None:
    operations = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 16
    threads: list[Thread] = []

    def apply() -> Any:
        threads.append(current_thread())
        return json_patch.apply({"a": ["x" * 10]}, operations)

    assert len((await offload(apply))["a"]) == 17
    assert [each is main_thread() for each in threads] == [True, False]
