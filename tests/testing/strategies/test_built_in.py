from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from steersman.testing import ThreadedEnvironment
from steersman.testing.strategies import UnknownKind, built_in

PATHS = {
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "CronJob": "/apis/batch/v1/namespaces/default/cronjobs",
    "Service": "/api/v1/namespaces/default/services",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
}


@pytest.fixture(scope="module")
def server() -> Any:
    with ThreadedEnvironment() as environment:
        yield environment


@pytest.mark.parametrize("kind", PATHS)
def test_a_server_accepts_objects(server: ThreadedEnvironment, kind: str) -> None:
    with server.client() as client:

        @settings(max_examples=10, deadline=None)
        @given(built_in(kind))
        def check(obj: dict[str, Any]) -> None:
            status, answer = client.json("POST", f"{PATHS[kind]}?dryRun=All&fieldValidation=Strict", obj)
            assert status == 201, answer["message"]

        check()


def test_an_unknown_kind_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownKind, match=r"no built-in kind Deploymant.*Deployment"):
        built_in("Deploymant")
