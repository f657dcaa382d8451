"""A real Helm, 3 or 4, where this machine has one, against a server process."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ServerProcess
from tests.e2e.helm_program import find_helm
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.slow

TIMEOUT = 60.0
OBJECTS = r"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-info
data:
  batch: {{ .Capabilities.APIVersions.Has "batch/v1/CronJob" | quote }}
  bogus: {{ .Capabilities.APIVersions.Has "example.com/v1" | quote }}
  version: "{{ .Capabilities.KubeVersion.Major }}.{{ .Capabilities.KubeVersion.Minor }}"
  {{- with lookup "v1" "Namespace" "" "kube-system" }}
  found: {{ .metadata.name }}
  {{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations:
    helm.sh/hook: pre-install,pre-upgrade,post-rollback
    helm.sh/hook-delete-policy: before-hook-creation
data:
  revision: {{ .Release.Revision | quote }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}-kept
  annotations:
    helm.sh/resource-policy: keep
data: {key: dmFsdWU=}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: {{ .Release.Name }}}
spec:
  schedule: "*/5 * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: image}]}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: {{ .Release.Name }}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
"""


class Helm:
    """helm as a user types it, in one namespace, with the chart `web` in its working folder."""

    def __init__(self, binary: str, server: ServerProcess, folder: Path, namespace: str) -> None:
        self._binary = binary
        self.folder = folder
        self.namespace = namespace
        homes = {f"HELM_{each}_HOME": str(folder / each.lower()) for each in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**os.environ, **homes, "KUBECONFIG": str(server.kubeconfig), "HELM_NAMESPACE": namespace}
        # Helm 4 applies on the server, and wants to be told that it may take over what others have changed.
        self.force = ("--force-conflicts",) if self("version", "--short").startswith("v4") else ()

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run helm and return the process, also if it failed."""
        return subprocess.run(
            [self._binary, *arguments],
            cwd=self.folder,
            env={**self._environment, **environment},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )

    def __call__(self, *arguments: str, **environment: str) -> str:
        """Run helm and return its output. An exit code other than 0 fails the test."""
        done = self.run(*arguments, **environment)
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def upgrade(self, *settings: str) -> str:
        return self("upgrade", "web", "web", *self.force, *(f"--set={each}" for each in settings))


@pytest.fixture
def helm(server: ServerProcess, kubectl: Kubectl, tmp_path: Path) -> Helm:
    """Return Helm in kubectl's namespace, with the chart that `helm create` makes and some more objects."""
    binary = find_helm()
    if binary is None:
        pytest.skip("no Helm on this machine: put it in PATH, or name it in $STEERSMAN_HELM")
    helm = Helm(binary, server, tmp_path, kubectl.namespace)
    helm("create", "web")
    (tmp_path / "web" / "templates" / "objects.yaml").write_text(OBJECTS)
    return helm


def revisions(helm: Helm) -> list[tuple[int, str]]:
    return [(each["revision"], each["status"]) for each in helm.json("history", "web")]


def names(kubectl: Kubectl, *arguments: str) -> list[str]:
    return [each["metadata"]["name"] for each in kubectl.json("get", *arguments)["items"]]


def test_a_release_is_installed_as_the_server_was_asked(helm: Helm, kubectl: Kubectl) -> None:
    assert "found: kube-system" in helm("install", "web", "web", "--dry-run=server")
    assert names(kubectl, "deployments,configmaps,secrets") == []
    helm("install", "web", "web")
    info = kubectl.json("get", "configmap", "web-info")["data"]
    assert info == {"batch": "true", "bogus": "false", "version": "1.36", "found": "kube-system"}
    assert names(kubectl, "deployments,services,cronjobs,roles") == ["web"] * 4
    (stored,) = kubectl.json("get", "secrets", "-l", "owner=helm,status=deployed")["items"]
    assert (stored["metadata"]["name"], stored["type"]) == ("sh.helm.release.v1.web.v1", "helm.sh/release.v1")
    assert helm.json("status", "web")["info"]["status"] == "deployed"
    (listed,) = helm.json("list")
    assert (listed["name"], listed["namespace"], listed["revision"]) == ("web", helm.namespace, "1")
    assert "a name that is still in use" in helm.run("install", "web", "web").stderr


def test_an_upgrade_merges_chart_and_live_changes(helm: Helm, kubectl: Kubectl) -> None:
    helm("install", "web", "web")
    before = kubectl.json("get", "service", "web")
    kubectl("label", "deployment", "web", "live=yes")
    kubectl("set", "env", "deployment/web", "LIVE=yes")
    kubectl("set", "image", "deployment/web", "web=live:1")
    kubectl("scale", "deployment", "web", "--replicas=4")
    kubectl("delete", "configmap", "web-info")

    helm.upgrade("image.tag=2", "service.port=81")
    changed = kubectl.json("get", "deployment", "web")
    (container,) = changed["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "nginx:2"
    assert container["env"] == [{"name": "LIVE", "value": "yes"}]
    assert changed["metadata"]["labels"]["live"] == "yes"
    assert changed["spec"]["replicas"] == 1
    service = kubectl.json("get", "service", "web")
    assert [each["port"] for each in service["spec"]["ports"]] == [81]
    assert service["spec"]["clusterIP"] == before["spec"]["clusterIP"]
    assert kubectl.json("get", "configmap", "web-info")["data"]["found"] == "kube-system"
    assert kubectl.json("get", "configmap", "web-hook")["data"] == {"revision": "2"}

    helm.upgrade("autoscaling.enabled=true", "ingress.enabled=true")
    assert names(kubectl, "hpa,ingress") == ["web", "web"]
    helm("rollback", "web", "1", *helm.force)
    assert names(kubectl, "hpa,ingress") == []
    (container,) = kubectl.json("get", "deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"][0]["name"]) == ("nginx:1.16.0", "LIVE")
    assert revisions(helm) == [(1, "superseded"), (2, "superseded"), (3, "superseded"), (4, "deployed")]


def test_a_release_that_is_refused_is_mended_by_the_next(helm: Helm, kubectl: Kubectl) -> None:
    helm("install", "web", "web")
    refused = helm.run("upgrade", "web", "web", "--set=service.type=Bogus", *helm.force)
    assert refused.returncode == 1
    assert 'Service "web" is invalid: spec.type: Unsupported value: "Bogus"' in refused.stderr
    assert helm.json("status", "web")["info"]["status"] == "failed"
    helm.upgrade("service.type=NodePort")
    assert kubectl.json("get", "service", "web")["spec"]["ports"][0]["nodePort"] >= 30000
    assert revisions(helm) == [(1, "superseded"), (2, "failed"), (3, "deployed")]


def test_what_is_uninstalled_is_gone_but_for_what_is_to_be_kept(helm: Helm, kubectl: Kubectl) -> None:
    helm("install", "web", "web")
    helm("uninstall", "web", "--keep-history")
    assert names(kubectl, "deployments,services,cronjobs,roles") == []
    assert [each["status"] for each in helm.json("list", "--uninstalled")] == ["uninstalled"]
    helm("rollback", "web", "1", *helm.force)
    assert names(kubectl, "deployments") == ["web"]
    helm("uninstall", "web")
    assert helm.json("list") == []
    assert names(kubectl, "secrets") == ["web-kept"]


def test_releases_can_be_kept_in_config_maps(helm: Helm, kubectl: Kubectl) -> None:
    helm("install", "web", "web", "--no-hooks", HELM_DRIVER="configmap")
    assert names(kubectl, "configmaps", "-l", "owner=helm") == ["sh.helm.release.v1.web.v1"]
    helm("uninstall", "web", HELM_DRIVER="configmap")
    assert names(kubectl, "configmaps") == []


def test_another_objects_owner_is_respected(helm: Helm, kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "web-info")
    refused = helm.run("install", "web", "web")
    assert "exists and cannot be imported into the current release" in refused.stderr
    helm("install", "web", "web", "--take-ownership")
    assert kubectl.json("get", "configmap", "web-info")["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "Helm"
    }


def test_what_helm_renders_is_applied_by_kubectl(helm: Helm, kubectl: Kubectl) -> None:
    rendered = helm("template", "web", "web", "--no-hooks")
    assert "deployment.apps/web created" in kubectl("apply", "-f", "-", stdin=rendered)
    again = kubectl("apply", "-f", "-", stdin=rendered).splitlines()
    assert len(again) == 7
    assert all(line.endswith(" unchanged") for line in again)
    assert kubectl("diff", "-f", "-", stdin=rendered) == ""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=rendered)
    kubectl("delete", "-f", "-", stdin=rendered)
    assert names(kubectl, "deployments,services,cronjobs,roles") == []
