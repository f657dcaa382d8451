"""The authorizer chain of a control plane: by modes, or by a file that may change."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.options import OptionsError
from steersman.server.certificates import CertificateFiles
from steersman.server.debug_paths import log_level
from steersman.testing import Client
from tests.controllers.waiting import eventually
from tests.https_hook import HttpsHook, http_response

PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Judge(HttpsHook):
    """A webhook that allows certain users."""

    def __init__(self, files: CertificateFiles, *allowed: str) -> None:
        super().__init__(files)
        self.allowed = allowed
        self.asked_of: list[str] = []

    def answered(self, target: str, body: Any) -> bytes:
        self.asked_of.append(body["spec"]["user"])
        status = {"allowed": body["spec"]["user"] in self.allowed, "reason": "the judge says so"}
        return http_response(200, json.dumps({**body, "status": status}).encode(), "application/json")

    def kubeconfig(self, folder: Path, ca: Path) -> Path:
        cluster = {"server": f"https://127.0.0.1:{self.port}/", "certificate-authority": str(ca)}
        file = folder / f"judge-{self.port}"
        file.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        return file


def chain(*authorizers: Any) -> str:
    """Return a configuration with these authorizers: modes, or kubeconfigs of webhooks."""
    given: list[dict[str, Any]] = []
    for each in authorizers:
        if isinstance(each, str):
            given.append({"type": each, "name": each.lower()})
            continue
        webhook = {
            "timeout": "3s",
            "subjectAccessReviewVersion": "v1",
            "failurePolicy": "NoOpinion",
            "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(each)},
        }
        given.append({"type": "Webhook", "name": each.name, "webhook": webhook})
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}
    return json.dumps({**head, "authorizers": given})


async def code(client: Client) -> int:
    return (await client.get(PODS)).status


async def test_a_webhook_judges_where_flags_say_so(
    start_control_plane: Callable[..., Awaitable[ControlPlane]],
    client_of: Callable[..., Client],
    hook_files: CertificateFiles,
    tmp_path: Path,
) -> None:
    async with Judge(hook_files, "alice") as judge:
        plane = await start_control_plane(
            authorization_mode=("Webhook", "RBAC"),
            authorization_webhook_version="v1",
            authorization_webhook_config_file=str(judge.kubeconfig(tmp_path, hook_files.ca)),
        )
        assert await code(client_of(plane, "alice")) == 200
        assert await code(client_of(plane)) == 200
        assert judge.asked_of == ["alice"]
        metrics = (await client_of(plane).get("/metrics")).body.decode()
        assert 'apiserver_authorization_decisions_total{type="Webhook",name="default",decision="allowed"} 1' in metrics
        assert 'apiserver_authorization_webhook_evaluations_total{name="default",result="success"} 1' in metrics


async def until(client: Client, status: int) -> None:
    async def is_so() -> bool:
        return await code(client) == status

    await eventually(is_so)


@pytest.mark.slow
async def test_a_changed_file_counts(
    start_control_plane: Callable[..., Awaitable[ControlPlane]],
    client_of: Callable[..., Client],
    hook_files: CertificateFiles,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(log_level(0))
    async with Judge(hook_files, "alice") as judge:
        webhook = judge.kubeconfig(tmp_path, hook_files.ca)
        file = tmp_path / "chain"
        file.write_text(chain("RBAC"))
        plane = await start_control_plane(authorization_config=str(file))
        alice = client_of(plane, "alice")
        assert await code(alice) == 403
        file.write_text(chain(webhook, "RBAC"))
        await until(alice, 200)
        file.write_text(chain(webhook))  # RBAC has to stay

        async def has_failed() -> bool:
            return "} 1" in _line(await _metrics(client_of(plane)), 'reloads_total{status="failure"')

        await eventually(has_failed)
        assert await code(alice) == 200
        file.write_text(chain("AlwaysDeny", "RBAC"))
        await until(alice, 403)
        metrics = await _metrics(client_of(plane))
        assert "} 2" in _line(metrics, 'reloads_total{status="success"')
        assert 'hash="sha256:' in _line(metrics, "last_config_info{")
        told = [each.levelname for each in caplog.records if "reload" in each.getMessage()]
        assert told == ["Level 25", "ERROR", "Level 25"]


async def _metrics(client: Client) -> str:
    return (await client.get("/metrics")).body.decode()


def _line(metrics: str, start: str) -> str:
    whole = f"apiserver_authorization_config_controller_{'automatic_' if start.startswith('reloads') else ''}{start}"
    return next((line for line in metrics.splitlines() if line.startswith(whole)), "")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"authorization_config": "/nosuch"}, "--authorization-config: "),
        (
            {"authorization_mode": ("ABAC",), "authorization_policy_file": "/nosuch"},
            "--authorization-policy-file: open /nosuch: no such file or directory",
        ),
        (
            {"authorization_mode": ("Webhook",), "authorization_webhook_config_file": "/nosuch"},
            "--authorization-webhook-config-file: stat /nosuch: no such file or directory",
        ),
    ],
)
async def test_files_that_cannot_be_used_end_the_start(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], options: dict[str, Any], why: str
) -> None:
    with pytest.raises(OptionsError) as error:
        await start_control_plane(**options)
    assert str(error.value).startswith(why)


async def test_abac_beside_roles(
    start_control_plane: Callable[..., Awaitable[ControlPlane]], client_of: Callable[..., Client], tmp_path: Path
) -> None:
    file = tmp_path / "policies"
    file.write_text('{"user": "alice", "namespace": "default", "resource": "pods", "readonly": true}')
    plane = await start_control_plane(authorization_mode=("RBAC", "ABAC"), authorization_policy_file=str(file))
    alice = client_of(plane, "alice")
    assert await code(alice) == 200
    refused = await alice.get("/api/v1/namespaces/default/secrets")
    assert refused.status == 403
    assert refused.json()["message"].endswith(": No policy matched.")
