"""Tests of DefaultTolerationSeconds."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_plugins.default_toleration_seconds import DefaultTolerationSeconds
from steersman.machinery.codec.serializer import to_plain
from steersman.registry.core.pods.pods import PODS
from tests.admission_plugins.pods_and_namespaces import make_pod
from tests.admission_plugins.writes import write_of

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        ([], {NOT_READY: 300, UNREACHABLE: 60}),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}], {UNREACHABLE: 60}),
        ([{"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}], {NOT_READY: 300, UNREACHABLE: 60}),
        ([{"operator": "Exists"}], {}),
    ],
)
def test_pods_put_up_with_failing_nodes_for_a_while(tolerations: Any, added: dict[str, int]) -> None:
    made = make_pod({"tolerations": tolerations})
    DefaultTolerationSeconds(300, 60).admit(write_of(PODS, made))
    found = [to_plain(each) for each in made.spec.tolerations[len(tolerations) :]]
    assert found == [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for key, seconds in added.items()
    ]
