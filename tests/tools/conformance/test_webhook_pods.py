"""The webhooks of pods run with what their volumes hold, and end with their pods."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ThreadedEnvironment
from tools.conformance import webhook_pods
from tools.conformance.webhook_pods import WebhookPods

SCRIPT = """\
#!/bin/sh
test "$1" = webhook && cat "${2#--tls-cert-file=}" > "$OUT"
exec sleep 600
"""


def pod(uid: str, *arguments: str) -> dict[str, Any]:
    mount = {"name": "certs", "mountPath": "/local/certificates"}
    return {
        "metadata": {"uid": uid, "name": uid, "namespace": "default"},
        "spec": {
            "containers": [{"args": list(arguments), "volumeMounts": [mount]}],
            "volumes": [{"name": "certs", "secret": {"secretName": "served"}}],
        },
    }


def test_a_webhook_runs_with_its_secret_until_its_pod_goes(
    steersman_session: ThreadedEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(told := tmp_path / "told")
    monkeypatch.setenv("OUT", str(told))
    monkeypatch.setattr(webhook_pods, "own_address", lambda: "192.0.2.7")
    (program := tmp_path / "webhooks").write_text(SCRIPT)
    program.chmod(0o755)
    with steersman_session.client() as client:
        secret = {"metadata": {"name": "served"}, "data": {"tls.crt": base64.b64encode(b"a certificate").decode()}}
        assert client.json("POST", "/api/v1/namespaces/default/secrets", secret)[0] == 201
        webhooks = WebhookPods(client, program)
        try:
            served = pod("a", "webhook", "--tls-cert-file=/local/certificates/tls.crt")
            assert webhooks.run(served) == "192.0.2.7"
            assert told.read_text() == "a certificate"
            assert webhooks.run(served) == "192.0.2.7"
            assert webhooks.run(pod("b", "pause")) is None
            (process,) = webhooks._running.values()
            webhooks.keep(["a", "b"])
            assert process.poll() is None
            webhooks.keep(["b"])
            assert process.returncode is not None
        finally:
            webhooks.stop()
