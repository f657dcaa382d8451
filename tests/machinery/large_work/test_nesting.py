"""The bound on how deeply documents may be nested."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.machinery.large_work.nesting import MAX_DEPTH, depth_of, is_too_deep

VALUES = st.recursive(
    st.none() | st.text(alphabet='ab"\\[]{}é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='a"\\[]{}', max_size=3), inner),
    max_leaves=12,
)


def levels(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(levels, value.values()), default=0)
    return 1 + max(map(levels, value), default=0) if isinstance(value, list) else 0


@given(VALUES)
def test_levels_are_counted_whatever_stands_in_strings(value: object) -> None:
    assert depth_of(json.dumps(value).encode()) == levels(value)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"]}":', b"}"), (b'[{"\\\\":', b"}]")])
def test_the_bound_is_exact(opening: bytes, closing: bytes) -> None:
    count = MAX_DEPTH // sum(opening.count(each) for each in (b"[", b"{"))
    deepest = opening * count + b'"[[[["' + closing * count
    assert depth_of(deepest) == MAX_DEPTH
    assert not is_too_deep(deepest)
    assert is_too_deep(b"[" + deepest + b"]")


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert not is_too_deep(b"[" + b'{"a":[]},' * 5000 + b"{}]")


DEEPEST = """
import json, threading
from steersman.machinery.patch import merge_patch
from steersman.machinery.large_work import nesting
from steersman.machinery.codec import strict, unstructured, yaml
from steersman.machinery.codec.json_tree import parse_tree, render
from steersman.machinery.codec.serializer import encode_in_order
nesting.raise_recursion_limit()
def all():
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        count = nesting.MAX_DEPTH - 1
        data = b'{"a":' + opening * count + b"1" + closing * count + b"}"
        assert render(parse_tree(data)) == data
        assert parse_tree(data.replace(b'1', b'"\\\\\\\\ud800"'))
        value = strict.decode_untyped(data)
        assert encode_in_order(value) == data
        assert strict.decode_object(dict, data, "json", want_strict=True).obj == value
        assert strict.decode_object(dict, b'{"z":1,"z":2,' + data[1:], "json", want_strict=True).warnings
        assert merge_patch.apply(value, value) == value
        loaded, _ = yaml.load(data)
        assert yaml.json_value(loaded) == value
        assert yaml.from_json(data)
        try:
            strict.decode_untyped(b"[" + data + b"]")
        except strict.DecodeError as error:
            assert str(error) == "exceeded max depth", error
        else:
            raise AssertionError("one level more was taken")
thread = threading.Thread(target=all)
failed = []
threading.excepthook = failed.append
thread.start()
thread.join()
assert not failed, failed
all()
"""


def test_what_is_as_deep_as_may_be_is_read_and_written_in_every_thread() -> None:
    subprocess.run([sys.executable, "-c", DEEPEST], check=True, timeout=120)
