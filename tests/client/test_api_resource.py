"""Tests of APIResource: decoding of objects from servers of other releases."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from steersman.client.resources import CONFIG_MAPS

NEWER: dict[str, Any] = {"metadata": {"name": "a", "creationTimestamp": None, "newer": 1}, "data": None, "newer": [{}]}


def test_members_that_are_not_known_and_nulls_are_left_out_as_go_does() -> None:
    assert CONFIG_MAPS.decode(json.dumps(NEWER).encode()).metadata.name == "a"
    found = CONFIG_MAPS.decode_list(json.dumps({"metadata": {"resourceVersion": "7"}, "items": [NEWER] * 2}).encode())
    assert ([each.metadata.name for each in found.items], found.metadata.resource_version) == (["a", "a"], "7")


@pytest.mark.parametrize("wrong", [{"metadata": 3}, {"data": {"a": 1}}, {"metadata": {"name": []}}])
def test_what_go_cannot_decode_is_an_error(wrong: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        CONFIG_MAPS.decode(json.dumps(wrong).encode())
    with pytest.raises(msgspec.ValidationError):
        CONFIG_MAPS.decode_list(json.dumps({"items": [wrong]}).encode())
