"""Tests of the first commands of kubectl users and their output, over HTTP/2."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "blue"}}


def rows(table: str) -> list[list[str]]:
    """Return the cells of a printed table, the header first."""
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]


# About the server


def test_version(kubectl: Kubectl) -> None:
    found = kubectl.json("version")["serverVersion"]
    assert (found["major"], found["minor"]) == ("1", "36")
    assert found["gitVersion"].startswith("v1.36.")


def test_cluster_info(kubectl: Kubectl) -> None:
    assert "Kubernetes control plane" in kubectl("cluster-info")


def test_api_versions(kubectl: Kubectl) -> None:
    assert {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1"} <= set(kubectl("api-versions").split())


def test_api_resources(kubectl: Kubectl) -> None:
    table = {row[0]: row for row in rows(kubectl("api-resources", "-o", "wide"))}
    assert table["pods"][1:5] == ["po", "v1", "true", "Pod"]
    assert table["pods"][5] == "create,delete,deletecollection,get,list,patch,update,watch"
    assert table["deployments"][1:5] == ["deploy", "apps/v1", "true", "Deployment"]
    assert "all" in table["pods"][6].split(",")


def test_explain(kubectl: Kubectl) -> None:
    text = kubectl("explain", "pod.spec.containers", "--recursive")
    assert "FIELD: containers <[]Container>" in text
    assert re.search(r"^ {2}imagePullPolicy\t<string>$", text, re.MULTILINE)
    assert re.search(r"^ {2}livenessProbe\t<Probe>\n {4}exec\t<ExecAction>$", text, re.MULTILINE)


def test_raw_paths(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "readyz check passed" in kubectl("get", "--raw", "/readyz?verbose")
    assert json.loads(kubectl("get", "--raw", "/version"))["major"] == "1"
    assert "apiserver_request_total" in kubectl("get", "--raw", "/metrics")
    assert json.loads(kubectl("get", "--raw", "/api/v1/namespaces/default"))["kind"] == "Namespace"


def test_what_a_cluster_has_from_the_start(kubectl: Kubectl) -> None:
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= {
        row[0] for row in rows(kubectl("get", "namespaces"))
    }
    assert rows(kubectl("get", "service", "kubernetes", "-n", "default"))[1][:2] == ["kubernetes", "ClusterIP"]
    assert "cluster-admin" in kubectl("get", "clusterroles")
    assert rows(kubectl("get", "priorityclasses"))[1][0] == "system-cluster-critical"


# The user


def test_who_am_i(kubectl: Kubectl) -> None:
    assert re.search(r"^Username +kubernetes-admin$", kubectl("auth", "whoami"), re.MULTILINE)


def test_what_may_i(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_who_acts_as_another_has_their_rights_only(kubectl: Kubectl) -> None:
    assert kubectl.run("auth", "can-i", "create", "pods", "--as=nobody").returncode != 0
    kubectl.fails("get", "pods", "--as=nobody")
    told = kubectl("auth", "whoami", "--as=jane", "--as-group=ops", "--as-uid=7")
    assert re.search(r"^Username +jane$", told, re.MULTILINE)
    assert re.search(r"^UID +7$", told, re.MULTILINE)
    assert re.search(r"^Groups +\[ops system:authenticated\]$", told, re.MULTILINE)


# Pods


def test_run_and_get(kubectl: Kubectl) -> None:
    assert kubectl("run", "nginx", "--image=nginx") == "pod/nginx created\n"
    header, row = rows(kubectl("get", "pods", "-o", "wide"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert row[:4] == ["nginx", "0/1", "Pending", "0"]
    assert row[5:] == ["<none>"] * 4
    text = kubectl("get", "pod", "nginx", "-o", "yaml")
    assert "\n  - image: nginx\n    imagePullPolicy: Always\n" in text
    assert "\n  phase: Pending\n" in text
    assert kubectl("get", "pod", "nginx", "-o", "jsonpath={.spec.containers[0].image}") == "nginx"
    assert kubectl("get", "pods", "-o", "name") == "pod/nginx\n"
    assert kubectl("get", "pods", "-l", "run=nginx", "--no-headers").startswith("nginx ")
    assert kubectl("get", "pods", "--field-selector", "status.phase=Running") == ""


def test_describe_pod(kubectl: Kubectl) -> None:
    kubectl("run", "nginx", "--image=nginx:1.29", "--port=80", "--env=A=b")
    text = kubectl("describe", "pod", "nginx")
    for line in (
        r"Name: +nginx",
        r"Namespace: +e2e-\d+",
        r"Labels: +run=nginx",
        r"Status: +Pending",
        r" +Image: +nginx:1\.29",
        r" +Port: +80/TCP",
        r"QoS Class: +BestEffort",
    ):
        assert re.search(rf"^{line}$", text, re.MULTILINE), line
    assert re.search(r"^Events: +<none>$", text, re.MULTILINE)


def test_a_pod_that_is_on_no_node_has_no_logs_and_runs_no_commands(kubectl: Kubectl) -> None:
    kubectl("run", "nginx", "--image=nginx")
    assert kubectl("logs", "nginx") == ""
    assert "pod nginx does not have a host assigned" in kubectl.fails("exec", "nginx", "--", "true")
    assert 'pods "other" not found' in kubectl.fails("logs", "other")


def test_a_watch_shows_what_happens(kubectl: Kubectl) -> None:
    kubectl("run", "first", "--image=nginx")
    with kubectl.following("get", "pods", "-w", "--output-watch-events") as lines:
        assert next(lines).split()[:3] == ["EVENT", "NAME", "READY"]
        assert next(lines).split()[:4] == ["ADDED", "first", "0/1", "Pending"]
        kubectl("run", "second", "--image=nginx")
        assert next(lines).split()[:4] == ["ADDED", "second", "0/1", "Pending"]
        kubectl("label", "pod", "second", "a=b")
        assert next(lines).split()[:2] == ["MODIFIED", "second"]
        kubectl("delete", "pod", "second", "--now")
        assert next(lines).split()[:2] == ["MODIFIED", "second"]  # its deletion is under way
        assert next(lines).split()[:2] == ["DELETED", "second"]


def test_events_are_listed(kubectl: Kubectl) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "nginx.1"},
        "type": "Warning",
        "reason": "Failed",
        "message": "it did not work",
        "involvedObject": {"kind": "Pod", "name": "nginx", "namespace": kubectl.namespace},
    }
    assert kubectl("get", "events") == ""
    kubectl.apply_file("create", event)
    row = rows(kubectl("get", "events"))[1]
    assert row[-4:] == ["Warning", "Failed", "pod/nginx", "it did not work"]
    kubectl("events")


# Making things


CREATED = {
    "deployment": ("create deployment web --image=nginx --replicas=3", "deployment.apps/web"),
    "configmap": ("create configmap settings --from-literal=a=b", "configmap/settings"),
    "secret": ("create secret generic password --from-literal=a=b", "secret/password"),
    "tls-like secret": ("create secret docker-registry hub --docker-username=a --docker-password=b", "secret/hub"),
    "service": ("create service clusterip web --tcp=80:8080", "service/web"),
    "node port": ("create service nodeport web --tcp=80", "service/web"),
    "external name": ("create service externalname web --external-name=example.com", "service/web"),
    "serviceaccount": ("create serviceaccount robot", "serviceaccount/robot"),
    "role": ("create role reader --verb=get,list --resource=pods", "role.rbac.authorization.k8s.io/reader"),
    "rolebinding": (
        "create rolebinding readers --role=reader --user=alice",
        "rolebinding.rbac.authorization.k8s.io/readers",
    ),
    "job": ("create job once --image=busybox -- true", "job.batch/once"),
    "cronjob": ("create cronjob often --image=busybox --schedule=@hourly -- true", "cronjob.batch/often"),
    "ingress": ("create ingress front --rule=example.com/*=web:80", "ingress.networking.k8s.io/front"),
    "quota": ("create quota few --hard=pods=2", "resourcequota/few"),
    "poddisruptionbudget": (
        "create poddisruptionbudget some --selector=a=b --min-available=1",
        "poddisruptionbudget.policy/some",
    ),
}


@pytest.mark.parametrize("kind", CREATED)
def test_create(kubectl: Kubectl, kind: str) -> None:
    command, name = CREATED[kind]
    assert kubectl(*command.split()) == f"{name} created\n"
    assert kubectl("get", name, "-o", "name") == f"{name}\n"
    assert kubectl("describe", name)
    assert f"{name.partition('/')[2]}" in kubectl("get", name)
    told = kubectl.fails(*command.split())
    assert "AlreadyExists" in told or "already exists" in told


CLUSTER_WIDE = {
    "namespace": ("create namespace made-by-kubectl", "namespace/made-by-kubectl"),
    "clusterrole": ("create clusterrole e2e --verb=get --resource=nodes", "clusterrole.rbac.authorization.k8s.io/e2e"),
    "clusterrolebinding": (
        "create clusterrolebinding e2e --clusterrole=view --user=alice",
        "clusterrolebinding.rbac.authorization.k8s.io/e2e",
    ),
    "priorityclass": ("create priorityclass e2e --value=7", "priorityclass.scheduling.k8s.io/e2e"),
}


@pytest.mark.parametrize("kind", CLUSTER_WIDE)
def test_create_for_the_whole_cluster(kubectl: Kubectl, kind: str) -> None:
    command, name = CLUSTER_WIDE[kind]
    assert kubectl(*command.split()) == f"{name} created\n"
    assert kubectl("get", name, "-o", "name") == f"{name}\n"
    kubectl("delete", name, "--wait=false")


def test_dry_run_on_the_server_makes_nothing(kubectl: Kubectl) -> None:
    text = kubectl("create", "deployment", "web", "--image=nginx", "--dry-run=server", "-o", "yaml")
    assert "\n  uid: " in text
    assert "\n  progressDeadlineSeconds: 600\n" in text
    assert "NotFound" in kubectl.fails("get", "deployment", "web")


def test_a_token_for_a_service_account(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    assert kubectl("create", "token", "robot").count(".") == 2


def test_get_all(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("create", "service", "clusterip", "web", "--tcp=80")
    kubectl("run", "nginx", "--image=nginx")
    text = kubectl("get", "all")
    for name in ("pod/nginx", "service/web", "deployment.apps/web"):
        assert re.search(rf"^{name} ", text, re.MULTILINE), name


def test_expose(kubectl: Kubectl) -> None:
    kubectl("run", "nginx", "--image=nginx", "--port=80")
    assert kubectl("expose", "pod", "nginx", "--port=8080", "--target-port=80") == "service/nginx exposed\n"
    service = kubectl.json("get", "service", "nginx")
    assert service["spec"]["selector"] == {"run": "nginx"}
    assert service["spec"]["clusterIP"].startswith("10.0.0.")


# Changing things


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl("run", "nginx", "--image=nginx")
    assert kubectl("label", "pod", "nginx", "tier=front") == "pod/nginx labeled\n"
    assert "already has a value" in kubectl.fails("label", "pod", "nginx", "tier=back")
    kubectl("label", "pod", "nginx", "tier=back", "--overwrite")
    kubectl("label", "pod", "nginx", "run-")
    assert kubectl("annotate", "pod", "nginx", "note=hello") == "pod/nginx annotated\n"
    metadata = kubectl.json("get", "pod", "nginx")["metadata"]
    assert metadata["labels"] == {"tier": "back"}
    assert metadata["annotations"] == {"note": "hello"}
    assert kubectl("get", "pods", "-L", "tier").splitlines()[0].endswith("TIER")


def test_replace(kubectl: Kubectl) -> None:
    kubectl.apply_file("create", CONFIGMAP)
    assert kubectl.apply_file("replace", CONFIGMAP | {"data": {"color": "red"}}) == "configmap/settings replaced\n"
    assert kubectl.json("get", "configmap", "settings")["data"] == {"color": "red"}
    stale = CONFIGMAP | {"metadata": {"name": "settings", "resourceVersion": "1"}}
    told = kubectl.fails("replace", "-f", "-", stdin=json.dumps(stale))
    assert "Conflict" in told
    assert "the object has been modified; please apply your changes to the latest version" in told


@pytest.mark.parametrize("kind", ["merge", "json", "strategic"])
def test_patch(kubectl: Kubectl, kind: str) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    patch = '[{"op": "replace", "path": "/spec/replicas", "value": 5}]' if kind == "json" else '{"spec":{"replicas":5}}'
    assert kubectl("patch", "deployment", "web", f"--type={kind}", "-p", patch) == "deployment.apps/web patched\n"
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 5


def test_scale_and_set_image(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    assert kubectl("scale", "deployment", "web", "--replicas=4") == "deployment.apps/web scaled\n"
    assert kubectl("set", "image", "deployment/web", "nginx=nginx:2") == "deployment.apps/web image updated\n"
    deployment = kubectl.json("get", "deployment", "web")
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (4, 3)
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


def test_delete(kubectl: Kubectl) -> None:
    kubectl.apply_file("create", CONFIGMAP)
    assert kubectl("delete", "configmap", "settings").startswith('configmap "settings" deleted')
    assert "NotFound" in kubectl.fails("get", "configmap", "settings")
    assert "NotFound" in kubectl.fails("delete", "configmap", "settings")
    for name in ("one", "two"):
        kubectl("create", "configmap", name)
    kubectl("delete", "configmaps", "--all")
    assert kubectl("get", "configmaps", "-o", "name") == ""


def test_a_pod_on_no_node_is_gone_at_once(kubectl: Kubectl) -> None:
    kubectl("run", "nginx", "--image=nginx")
    began = time.monotonic()
    assert kubectl("delete", "pod", "nginx").startswith('pod "nginx" deleted')
    assert time.monotonic() - began < 10
    assert kubectl("get", "pods", "-o", "name") == ""


# Errors


def test_a_kind_there_is_not(kubectl: Kubectl) -> None:
    assert 'the server doesn\'t have a resource type "unicorns"' in kubectl.fails("get", "unicorns")


def test_a_namespace_there_is_not(kubectl: Kubectl) -> None:
    told = kubectl.fails("run", "nginx", "--image=nginx", "-n", "nowhere")
    assert 'namespaces "nowhere" not found' in told


def test_a_body_that_is_not_valid_names_every_field(kubectl: Kubectl) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Bad_Name"}, "spec": {"containers": []}}
    told = kubectl.fails("create", "--validate=false", "-f", "-", stdin=json.dumps(pod))
    assert 'The Pod "Bad_Name" is invalid' in told
    assert "metadata.name: Invalid value" in told
    assert "spec.containers: Required value" in told


def test_a_field_there_is_not_is_told_before_it_is_lost(kubectl: Kubectl) -> None:
    odd = CONFIGMAP | {"dota": {"a": "b"}}
    assert 'unknown field "dota"' in kubectl.fails("create", "-f", "-", stdin=json.dumps(odd))
