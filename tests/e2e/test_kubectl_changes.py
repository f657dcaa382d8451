"""Tests of kubectl commands that change objects: apply, edit, set, rollout and other patches."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "blue"}}


def deployment(*containers: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """Return a Deployment `web` as in a user's file."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers), **pod}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def containers(found: dict[str, Any]) -> list[dict[str, Any]]:
    containers: list[dict[str, Any]] = found["spec"]["template"]["spec"]["containers"]
    return containers


def container(kubectl: Any, name: str = "deployment/web") -> dict[str, Any]:
    """Return the first container of the Pod template on the server."""
    return containers(kubectl.json("get", name))[0]


# apply


def test_apply_and_diff(kubectl: Kubectl) -> None:
    assert kubectl.apply_file("apply", CONFIGMAP) == "configmap/settings created\n"
    assert kubectl.apply_file("apply", CONFIGMAP) == "configmap/settings unchanged\n"
    changed = CONFIGMAP | {"data": {"size": "big"}}
    shown = kubectl.run("diff", "-f", "-", stdin=json.dumps(changed))
    assert (shown.returncode, "+  size: big" in shown.stdout) == (1, True)
    assert kubectl.apply_file("apply", changed) == "configmap/settings configured\n"
    assert kubectl.json("get", "configmap", "settings")["data"] == {"size": "big"}


def test_apply_takes_back_what_it_gave_and_leaves_what_others_gave(kubectl: Kubectl) -> None:
    one = {"name": "one", "image": "one", "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}]}
    two = {"name": "two", "image": "two"}
    kubectl.apply_file("apply", deployment(one, two, volumes=[{"name": "v", "emptyDir": {}}]))
    kubectl("set", "env", "deployment/web", "-c", "one", "C=c")
    kubectl("scale", "deployment", "web", "--replicas=3")

    smaller = deployment({"name": "one", "image": "one:2", "env": [{"name": "B", "value": "b"}]})
    assert kubectl.apply_file("apply", smaller) == "deployment.apps/web configured\n"
    found = kubectl.json("get", "deployment", "web")
    assert [(each["name"], each["image"]) for each in containers(found)] == [("one", "one:2")]
    assert containers(found)[0]["env"] == [{"name": "B", "value": "b"}, {"name": "C", "value": "c"}]
    assert found["spec"]["replicas"] == 3
    assert "volumes" not in found["spec"]["template"]["spec"]


def test_apply_puts_items_into_the_order_of_the_file(kubectl: Kubectl) -> None:
    names = [{"name": name, "image": name} for name in ("a", "b", "c")]
    kubectl.apply_file("apply", deployment(*names))
    kubectl.apply_file("apply", deployment(*reversed(names), {"name": "d", "image": "d"}))
    assert [each["name"] for each in containers(kubectl.json("get", "deployment", "web"))] == ["c", "b", "a", "d"]


def test_apply_swaps_the_source_of_a_volume_and_the_strategy(kubectl: Kubectl) -> None:
    before = deployment({"name": "one", "image": "one"}, volumes=[{"name": "v", "emptyDir": {}}])
    after = deployment({"name": "one", "image": "one"}, volumes=[{"name": "v", "configMap": {"name": "settings"}}])
    before["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}
    after["spec"]["strategy"] = {"type": "Recreate"}
    kubectl.apply_file("apply", before)
    assert kubectl.apply_file("apply", after) == "deployment.apps/web configured\n"
    spec = kubectl.json("get", "deployment", "web")["spec"]
    (volume,) = spec["template"]["spec"]["volumes"]
    assert volume == {"name": "v", "configMap": {"name": "settings", "defaultMode": 420}}
    assert spec["strategy"] == {"type": "Recreate"}


def test_apply_dry_run_and_last_applied(kubectl: Kubectl) -> None:
    kubectl.apply_file("apply", CONFIGMAP)
    changed = json.dumps(CONFIGMAP | {"data": {"color": "red"}})
    told = kubectl("apply", "--dry-run=server", "-f", "-", stdin=changed)
    assert told == "configmap/settings configured (server dry run)\n"
    assert kubectl.json("get", "configmap", "settings")["data"] == {"color": "blue"}
    kubectl("apply", "set-last-applied", "-f", "-", stdin=changed)
    assert json.loads(kubectl("apply", "view-last-applied", "configmap", "settings", "-o", "json"))["data"] == {
        "color": "red"
    }


# patch


def test_patch_is_strategic_unless_told_otherwise(kubectl: Kubectl) -> None:
    kubectl.apply_file("create", deployment({"name": "one", "image": "one"}, {"name": "two", "image": "two"}))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "two:2"}]}}}}
    assert kubectl("patch", "deployment", "web", "-p", json.dumps(patch)) == "deployment.apps/web patched\n"
    assert kubectl("patch", "deployment", "web", "-p", json.dumps(patch)) == "deployment.apps/web patched (no change)\n"
    found = containers(kubectl.json("get", "deployment", "web"))
    assert [each["image"] for each in found] == ["one", "two:2"]


@pytest.mark.parametrize("kind", ["merge", "strategic"])
def test_patch_of_a_subresource(kubectl: Kubectl, kind: str) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    patch = ("patch", "deployment", "web", f"--type={kind}")
    kubectl(*patch, "--subresource=scale", "-p", '{"spec":{"replicas":2}}')
    kubectl(*patch, "--subresource=status", "-p", '{"status":{"replicas":2,"readyReplicas":1}}')
    deployment = kubectl.json("get", "deployment", "web")
    assert (deployment["spec"]["replicas"], deployment["status"]["readyReplicas"]) == (2, 1)


def test_a_patch_that_makes_no_sense_is_told(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    told = kubectl.fails("patch", "deployment", "web", "-p", '{"spec":{"replicas":"many"}}')
    assert "unrecognized type: int32" in told
    told = kubectl.fails("patch", "deployment", "web", "-p", '{"spec":{"template":{"spec":{"containers":[{}]}}}}')
    assert "map: map[] does not contain declared merge key: name" in told


def test_a_debug_container_is_added(kubectl: Kubectl) -> None:
    kubectl("run", "nginx", "--image=nginx")
    told = kubectl("debug", "nginx", "--image=busybox", "--container=look", "--attach=false", "--", "sleep", "1")
    assert told == ""
    (found,) = kubectl.json("get", "pod", "nginx")["spec"]["ephemeralContainers"]
    assert (found["name"], found["image"]) == ("look", "busybox")


# edit


def test_edit(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1")
    edited = kubectl("edit", "deployment", "web", editor="sed -i s/nginx:1/nginx:2/")
    assert edited == "deployment.apps/web edited\n"
    assert container(kubectl)["image"] == "nginx:2"
    assert kubectl.run("edit", "deployment", "web", editor="true").stderr == "Edit cancelled, no changes made.\n"


def test_an_edit_that_is_refused_says_why(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1")
    done = kubectl.run("edit", "deployment", "web", editor="sed -i s/replicas:.1/replicas:\\ -1/")
    assert 'error: deployments.apps "web" is invalid' in done.stderr
    (copy,) = re.findall('stored to "(.*)"', done.stderr)
    assert "# * spec.replicas: Invalid value: -1: must be greater than or equal to 0" in Path(copy).read_text()


# set


def test_set_env(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    assert kubectl("set", "env", "deployment/web", "A=a", "B=b") == "deployment.apps/web env updated\n"
    kubectl("set", "env", "deployment/web", "B=c", "A-")
    assert container(kubectl)["env"] == [{"name": "B", "value": "c"}]
    assert "B=c" in kubectl("set", "env", "deployment/web", "--list")


def test_set_resources_service_account_and_selector(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    told = kubectl("set", "resources", "deployment/web", "--limits=cpu=200m,memory=512Mi", "--requests=cpu=100m")
    assert told == "deployment.apps/web resource requirements updated\n"
    assert container(kubectl)["resources"] == {
        "limits": {"cpu": "200m", "memory": "512Mi"},
        "requests": {"cpu": "100m"},
    }
    assert kubectl("set", "serviceaccount", "deployment/web", "robot") == "deployment.apps/web serviceaccount updated\n"
    assert kubectl.json("get", "deployment/web")["spec"]["template"]["spec"]["serviceAccountName"] == "robot"
    kubectl("create", "service", "clusterip", "web", "--tcp=80")
    assert kubectl("set", "selector", "service", "web", "app=other") == "service/web selector updated\n"
    assert kubectl.json("get", "service", "web")["spec"]["selector"] == {"app": "other"}


def test_set_subject(kubectl: Kubectl) -> None:
    kubectl("create", "rolebinding", "readers", "--clusterrole=view", "--user=alice")
    kubectl("set", "subject", "rolebinding", "readers", "--user=bob")
    found = kubectl.json("get", "rolebinding", "readers")["subjects"]
    assert [each["name"] for each in found] == ["alice", "bob"]


def test_autoscale_and_expose(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "--port=80")
    told = kubectl("autoscale", "deployment", "web", "--min=2", "--max=5", "--cpu=50%")
    assert told == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    spec = kubectl.json("get", "hpa", "web")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 5)
    assert kubectl("expose", "deployment", "web") == "service/web exposed\n"
    assert kubectl.json("get", "service", "web")["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


# rollout: the controller's part is played here


def settle(kubectl: Any, name: str) -> None:
    """Write the status that a controller writes once all replicas run."""
    found = kubectl.json("get", name)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    status = {"observedGeneration": found["metadata"]["generation"], **counts}
    kubectl("patch", name, "--subresource=status", "-p", json.dumps({"status": status}))


def keep_revision(kubectl: Any, number: int) -> None:
    """Create the ReplicaSet that a controller creates for the present Deployment."""
    deployment = kubectl.json("get", "deployment", "web")
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"] | {"pod-template-hash": str(number)}
    revision = {"deployment.kubernetes.io/revision": str(number)}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": deployment["metadata"]["uid"]}
    kubectl("annotate", "deployment", "web", f"deployment.kubernetes.io/revision={number}", "--overwrite")
    kubectl.apply_file(
        "create",
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"web-{number}",
                "labels": labels,
                "annotations": revision,
                "ownerReferences": [owner | {"controller": True}],
            },
            "spec": {"selector": {"matchLabels": labels}, "template": {**template, "metadata": {"labels": labels}}},
        },
    )


def test_rollout_status_restart_pause_and_resume(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    told = kubectl("rollout", "status", "deployment/web", "--watch=false")
    assert told == "Waiting for deployment spec update to be observed...\n"
    settle(kubectl, "deployment/web")
    assert kubectl("rollout", "status", "deployment/web") == 'deployment "web" successfully rolled out\n'
    assert kubectl("rollout", "restart", "deployment/web") == "deployment.apps/web restarted\n"
    metadata = kubectl.json("get", "deployment", "web")["spec"]["template"]["metadata"]
    assert "kubectl.kubernetes.io/restartedAt" in metadata["annotations"]
    assert "Waiting for" in kubectl("rollout", "status", "deployment/web", "--watch=false")
    assert kubectl("rollout", "pause", "deployment/web") == "deployment.apps/web paused\n"
    assert kubectl.json("get", "deployment", "web")["spec"]["paused"] is True
    assert kubectl("rollout", "resume", "deployment/web") == "deployment.apps/web resumed\n"
    assert "paused" not in kubectl.json("get", "deployment", "web")["spec"]


def test_rollout_history_and_undo(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1")
    keep_revision(kubectl, 1)
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    keep_revision(kubectl, 2)
    lines = kubectl("rollout", "history", "deployment/web").splitlines()
    assert [line.split()[0] for line in lines if line[:1].isdigit()] == ["1", "2"]
    assert "nginx:1" in kubectl("rollout", "history", "deployment/web", "--revision=1")
    assert kubectl("rollout", "undo", "deployment/web") == "deployment.apps/web rolled back\n"
    assert container(kubectl)["image"] == "nginx:1"


def test_rollout_undo_of_a_daemon_set_takes_the_template_of_its_revision(kubectl: Kubectl) -> None:
    daemon_set = deployment({"name": "one", "image": "one:2"}) | {"kind": "DaemonSet"}
    kubectl.apply_file("create", daemon_set)
    uid = kubectl.json("get", "daemonset", "web")["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web", "uid": uid, "controller": True}
    for number in (1, 2):
        template = {
            "$patch": "replace",
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "one", "image": f"one:{number}"}]},
        }
        kubectl.apply_file(
            "create",
            {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "revision": number,
                "metadata": {"name": f"web-{number}", "labels": {"app": "web"}, "ownerReferences": [owner]},
                "data": {"spec": {"template": template}},
            },
        )
    assert "one:1" in kubectl("rollout", "history", "daemonset/web", "--revision=1")
    assert kubectl("rollout", "undo", "daemonset/web") == "daemonset.apps/web rolled back\n"
    assert container(kubectl, "daemonset/web")["image"] == "one:1"


# nodes


def test_taint_cordon_and_drain(kubectl: Kubectl) -> None:
    name = f"node-{kubectl.namespace}"
    kubectl.apply_file("create", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    assert kubectl("taint", "node", name, "key=value:NoSchedule") == f"node/{name} tainted\n"
    taint = {"key": "key", "value": "value", "effect": "NoSchedule"}
    assert taint in kubectl.json("get", "node", name)["spec"]["taints"]
    assert kubectl("taint", "node", name, "key=other:NoSchedule", "--overwrite") == f"node/{name} modified\n"
    assert kubectl("taint", "node", name, "key-") == f"node/{name} untainted\n"
    assert taint["key"] not in [each["key"] for each in kubectl.json("get", "node", name)["spec"].get("taints", [])]

    assert kubectl("cordon", name) == f"node/{name} cordoned\n"
    assert kubectl.json("get", "node", name)["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in kubectl("get", "node", name)
    assert kubectl("uncordon", name) == f"node/{name} uncordoned\n"
    assert "unschedulable" not in kubectl.json("get", "node", name)["spec"]
    assert f"node/{name} drained" in kubectl("drain", name, "--ignore-daemonsets", "--force")
    assert kubectl("label", "node", name, "disk=ssd") == f"node/{name} labeled\n"
    kubectl("delete", "node", name)
