"""kwok's stages, with a real kubectl and `steersman up --config`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.nodes.stages.samples import ENDS, RUNS, selecting, stage, where

pytestmark = pytest.mark.slow
TIMEOUT = 60.0
FAILS = stage(
    "fails",
    selector=selecting(where('.metadata.labels["fails"]', "In", "true"), where(".status.phase", "In", "Running")),
    next={
        "event": {"type": "Warning", "reason": "Failing", "message": "it fails"},
        "statusTemplate": """
            {{ $now := Now }}
            phase: Failed
            containerStatuses:
            {{ range .spec.containers }}
            - {name: {{ .name }}, image: {{ .image | Quote }}, imageID: "", ready: false, restartCount: 0,
               state: {terminated: {exitCode: 7, reason: Crashed, finishedAt: {{ $now | Quote }}}}}
            {{ end }}
        """,
    },
)


def test_pods_live_as_stages_say(kubectl_binary: str, tmp_path: Path) -> None:
    config = tmp_path / "cluster.yaml"
    runs = json.loads(json.dumps(RUNS))
    runs["spec"]["delay"] = {"durationMilliseconds": 100}
    config.write_text("\n---\n".join(json.dumps(each) for each in ({"nodes": [{"count": 2}]}, runs, ENDS, FAILS)))
    data = tmp_path / "data"
    up = [
        sys.executable,
        "-m",
        "steersman.cli",
        "up",
        f"--data-dir={data}",
        "--secure-port=0",
        "--storage=memory",
        f"--config={config}",
    ]
    environment = {**os.environ, "KUBECONFIG": str(data / "admin.kubeconfig"), "HOME": str(tmp_path)}

    def kubectl(*arguments: str) -> str:
        done = subprocess.run(
            [kubectl_binary, *arguments], env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as process, ExitStack() as stack:
        stack.callback(process.terminate)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        kubectl("run", "web", "--image=nginx")
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
        assert kubectl("exec", "web", "--", "hostname") == "web\n"
        assert kubectl("logs", "web")
        kubectl("run", "bad", "--image=nginx", "--labels=fails=true")
        kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/bad", "--timeout=30s")
        assert "Crashed" in kubectl("get", "pod", "bad")
        assert "kwok_controller" in kubectl("describe", "pod", "bad")
        kubectl("delete", "pod", "web", "--timeout=30s")


def test_a_stage_that_cannot_be_followed_ends_the_start(tmp_path: Path) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text(json.dumps(stage("mine", selector=selecting(where(".a |", "Exists")))))
    up = [sys.executable, "-m", "steersman.cli", "up", f"--data-dir={tmp_path}/data", f"--config={config}"]
    done = subprocess.run(up, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1
    assert "Stage mine: .a |: syntax error" in done.stderr
