"""resource.k8s.io v1beta1 and v1beta2 to v1 and back."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from steersman.api.resource import v1, v1beta1
from steersman.kinds.built_in import gvk_of
from steersman.machinery.codec.serializer import decode_json, to_plain
from steersman.machinery.conversion.resource import (
    CONVERSIONS,
    from_v1_device,
    from_v1_request,
    from_v1_slice_spec,
    to_v1_device,
    to_v1_request,
    to_v1_slice_spec,
)
from tests.example_counts import examples
from tools.differential import objects

SAMPLES = [each for each in objects.samples_on_request() if each.api_version.startswith("resource.k8s.io/v1beta")]
WAYS = {(each.source, each.target): each.convert for each in CONVERSIONS}


def test_a_request_has_the_members_of_exactly_itself() -> None:
    old = v1beta1.DeviceRequest(
        name="a", device_class_name="c", count=2, selectors=[v1beta1.DeviceSelector(v1beta1.CELDeviceSelector("true"))]
    )
    selectors = [v1.DeviceSelector(v1.CELDeviceSelector("true"))]
    exactly = v1.ExactDeviceRequest(device_class_name="c", count=2, selectors=selectors)
    assert to_v1_request(old) == v1.DeviceRequest(name="a", exactly=exactly)
    assert from_v1_request(to_v1_request(old)) == old


@pytest.mark.parametrize("member", [{"admin_access": False}, {"count": 1}, {"allocation_mode": "All"}])
def test_any_member_makes_exactly(member: dict[str, Any]) -> None:
    assert to_v1_request(v1beta1.DeviceRequest(name="a", **member)).exactly == v1.ExactDeviceRequest(**member)


def test_alternatives_alone_make_none() -> None:
    old = v1beta1.DeviceRequest(name="a", first_available=[v1beta1.DeviceSubRequest(name="b", device_class_name="c")])
    new = to_v1_request(old)
    assert new.exactly is None
    assert new.first_available == [v1.DeviceSubRequest(name="b", device_class_name="c")]
    assert from_v1_request(new) == old


def test_a_device_has_its_members_in_basic() -> None:
    old = v1beta1.Device(name="d", basic=v1beta1.BasicDevice(attributes={"a": v1beta1.DeviceAttribute(int=1)}))
    assert to_v1_device(old) == v1.Device(name="d", attributes={"a": v1.DeviceAttribute(int=1)})
    assert from_v1_device(to_v1_device(old)) == old
    assert from_v1_device(to_v1_device(v1beta1.Device(name="d"))).basic == v1beta1.BasicDevice()


def test_a_slice_does_not_tell_nothing_from_an_empty_place() -> None:
    new = to_v1_slice_spec(v1beta1.ResourceSliceSpec(node_name="", all_nodes=False))
    assert (new.node_name, new.all_nodes, new.devices) == (None, None, None)
    assert from_v1_slice_spec(new) == v1beta1.ResourceSliceSpec()
    new = to_v1_slice_spec(v1beta1.ResourceSliceSpec(node_name="n", all_nodes=True, devices=[]))
    assert (new.node_name, new.all_nodes, new.devices) == ("n", True, [])


@settings(max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), sample=st.sampled_from(SAMPLES))
def test_what_an_older_version_says_survives_the_way_to_the_stored_one_and_back(
    seed: int, sample: objects.Sample
) -> None:
    random = Random(seed)
    body = copy.deepcopy(sample.body)
    objects.change(random, body, sample.type, random.choice((0, 1, 2, 3)), below=("spec", "status"))
    older = next(each for each in WAYS if _names(each[0]) == (sample.api_version, body["kind"]))
    hub = older[1]
    try:
        obj: Any = decode_json(older[0], json.dumps(body).encode())
    except ValueError:
        assume(False)
    obj.kind = obj.api_version = ""
    stored = WAYS[older](obj)
    again = WAYS[hub, older[0]](stored)
    assert WAYS[older](again) == stored
    if hub is not v1.ResourceSlice:  # its devices come back with `basic`
        assert to_plain(again) == to_plain(obj)


def _names(cls: Any) -> tuple[str, str]:
    gvk = gvk_of(cls)
    return str(gvk.group_version), gvk.kind
