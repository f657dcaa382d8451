"""kubectl apply --server-side: making and changing things, conflicts, and taking over from client-side apply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "blue"}}


def with_data(**data: str) -> str:
    return json.dumps(CONFIGMAP | {"data": data})


def deployment(replicas: int | None = None, image: str = "nginx") -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": spec if replicas is None else {**spec, "replicas": replicas},
    }


def apply(kubectl: Any, body: Any, *flags: str) -> str:
    text = body if isinstance(body, str) else json.dumps(body)
    return str(kubectl("apply", "--server-side", *flags, "-f", "-", stdin=text))


def owners(kubectl: Any, *what: str) -> list[tuple[str, str, str]]:
    found = json.loads(kubectl("get", *what, "-o", "json", "--show-managed-fields"))
    return [
        (entry["manager"], entry["operation"], entry.get("subresource", ""))
        for entry in found["metadata"].get("managedFields", [])
    ]


def test_make_and_change(kubectl: Kubectl) -> None:
    assert apply(kubectl, deployment(replicas=2)) == "deployment.apps/web serverside-applied\n"
    first = kubectl.json("get", "deployment", "web")
    assert apply(kubectl, deployment(replicas=2)) == "deployment.apps/web serverside-applied\n"
    assert kubectl.json("get", "deployment", "web") == first
    apply(kubectl, deployment(replicas=3, image="nginx:2"))
    found = kubectl.json("get", "deployment", "web")
    assert found["spec"]["replicas"] == 3
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert owners(kubectl, "deployment", "web") == [("kubectl", "Apply", "")]
    assert LAST_APPLIED not in found["metadata"].get("annotations", {})


def test_what_is_no_longer_in_the_file_goes(kubectl: Kubectl) -> None:
    apply(kubectl, with_data(color="blue", size="big"))
    apply(kubectl, with_data(color="red"))
    assert kubectl.json("get", "configmap", "settings")["data"] == {"color": "red"}


def test_a_conflict_and_forcing_it(kubectl: Kubectl) -> None:
    apply(kubectl, with_data(color="blue"))
    told = kubectl.fails(
        "apply", "--server-side", "--field-manager=other", "-f", "-", stdin=with_data(color="red", size="big")
    )
    assert 'error: Apply failed with 1 conflict: conflict with "kubectl": .data.color\n' in told
    assert "Please review the fields above--they currently have other managers." in told
    apply(kubectl, with_data(color="red"), "--field-manager=other", "--force-conflicts")
    assert kubectl.json("get", "configmap", "settings")["data"] == {"color": "red"}
    assert owners(kubectl, "configmap", "settings") == [("other", "Apply", "")]


def test_conflicts_with_what_kubectl_did_itself(kubectl: Kubectl) -> None:
    apply(kubectl, deployment(replicas=2))
    kubectl("scale", "deployment", "web", "--replicas=5")
    told = kubectl.fails("apply", "--server-side", "-f", "-", stdin=json.dumps(deployment(replicas=2)))
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in told
    apply(kubectl, deployment())  # who does not say it leaves it alone
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 5


def test_a_dry_run_and_a_diff_change_nothing(kubectl: Kubectl) -> None:
    apply(kubectl, with_data(color="blue"))
    told = apply(kubectl, with_data(color="red"), "--dry-run=server")
    assert told == "configmap/settings serverside-applied (server dry run)\n"
    shown = kubectl.run("diff", "--server-side", "-f", "-", stdin=with_data(color="red"))
    assert shown.returncode == 1
    assert "-  color: blue\n+  color: red\n" in shown.stdout
    assert kubectl.run("diff", "--server-side", "-f", "-", stdin=with_data(color="blue")).returncode == 0
    assert kubectl.json("get", "configmap", "settings")["data"] == {"color": "blue"}


def test_taking_over_from_client_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=with_data(color="blue", size="big"))
    assert owners(kubectl, "configmap", "settings") == [("kubectl-client-side-apply", "Update", "")]
    told = apply(kubectl, with_data(color="red"))
    assert told == "configmap/settings serverside-applied\n"
    configmap = kubectl.json("get", "configmap", "settings")
    assert configmap["data"] == {"color": "red"}
    assert sorted(owners(kubectl, "configmap", "settings")) == [
        ("kubectl", "Apply", ""),
        ("kubectl-last-applied", "Apply", ""),
    ]


def test_the_last_applied_annotation_is_kept_in_step(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=with_data(color="blue"))
    apply(kubectl, with_data(color="red"))
    shown = json.loads(kubectl("apply", "view-last-applied", "configmap", "settings", "-o", "json"))
    assert shown["data"] == {"color": "red"}
    # the client puts empty annotations into its own form of it
    assert kubectl("apply", "-f", "-", stdin=with_data(color="red")) == "configmap/settings configured\n"
    assert kubectl("apply", "-f", "-", stdin=with_data(color="red")) == "configmap/settings unchanged\n"


def test_a_status_is_applied_by_itself(kubectl: Kubectl) -> None:
    apply(kubectl, deployment())
    status = {**deployment(), "status": {"replicas": 3}}
    apply(kubectl, status, "--subresource=status", "--field-manager=controller")
    assert kubectl.json("get", "deployment", "web")["status"] == {"replicas": 3}
    assert ("controller", "Apply", "status") in owners(kubectl, "deployment", "web")


def test_a_field_there_is_not_is_refused(kubectl: Kubectl) -> None:
    odd = json.dumps(CONFIGMAP | {"dota": {"a": "b"}})
    told = kubectl.fails("apply", "--server-side", "--validate=false", "-f", "-", stdin=odd)
    assert ".dota: field not declared in schema" in told
