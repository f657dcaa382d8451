"""Nodes that pods may run on by their node selector, affinity and tolerations."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import PodSpec, Taint, Toleration
from steersman.machinery.built_in.node_affinity import required
from steersman.machinery.built_in.taints import untolerated
from steersman.machinery.codec.serializer import from_plain


def requires(*terms: dict[str, Any], **selector: str) -> PodSpec:
    by_labels = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    affinity = {"nodeAffinity": by_labels} if terms else {}
    return from_plain(PodSpec, {"containers": [], "affinity": affinity, "nodeSelector": selector})


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        (requires(zone="a"), True),
        (requires(zone="b"), False),
        (requires(expression("zone", "In", "a", "b")), True),
        (requires(expression("zone", "NotIn", "a")), False),
        (requires(expression("other", "DoesNotExist")), True),
        (requires(expression("size", "Gt", "3")), True),
        (requires(expression("size", "Lt", "3")), False),
        (requires(expression("zone", "In", "b"), expression("zone", "Exists")), True),
        (requires({}), False),
        (requires(expression("zone", "Odd")), False),
        (requires({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}), True),
        (requires({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}), False),
        (requires({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["n"]}]}), False),
        (requires(expression("zone", "In", "a"), zone="b"), False),
    ],
)
def test_affinity_and_selector_of_nodes(spec: PodSpec, *, fits: bool) -> None:
    matches = required(spec)
    assert matches is not None
    assert matches("n", {"zone": "a", "size": "5"}) is fits


def test_a_pod_that_requires_nothing_fits_anywhere() -> None:
    assert required(requires()) is None


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Equal", value="other"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
    ],
)
def test_taints_are_tolerated_by_key_value_and_effect(toleration: Toleration, *, tolerated: bool) -> None:
    taints = [Taint(key="k", value="v", effect="NoSchedule"), Taint(key="soft", effect="PreferNoSchedule")]
    assert (untolerated([toleration], taints, "NoSchedule", "NoExecute") is None) is tolerated
