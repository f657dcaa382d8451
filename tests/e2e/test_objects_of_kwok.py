"""Objects of kwok, as kubectl logs, exec, attach and port-forward show them for simulated pods."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
TIMEOUT = 60.0

Plain = dict[str, Any]


def of_kwok(kind: str, name: str, **spec: Any) -> Plain:
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_kubectl_shows_what_objects_of_kwok_say(kubectl_binary: str, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / "web.log"
    file.write_text("2026-11-29T10:00:00.000000001Z stdout F hello\n")
    (tmp_path / "cluster.yaml").write_text("logFiles: files\n")
    objects = [
        of_kwok("Logs", "web", logs=[{"logsFile": "web.log"}]),
        of_kwok("ClusterAttach", "all", attaches=[{"logsFile": "web.log"}]),
        of_kwok(
            "ClusterExec", "all", execs=[{"local": {"workDir": "/tmp", "envs": [{"name": "WHO", "value": "kwok"}]}}]
        ),
        of_kwok("PortForward", "refused", forwards=[{"command": ["sh", "-c", "cat"]}]),
        of_kwok(
            "ClusterResourceUsage", "all", usages=[{"usage": {"cpu": {"value": "300m"}, "memory": {"value": "5Mi"}}}]
        ),
    ]
    data = tmp_path / "data"
    up = [
        *(sys.executable, "-m", "steersman.cli", "up", f"--data-dir={data}", "--secure-port=0", "--storage=memory"),
        f"--config={tmp_path / 'cluster.yaml'}",
    ]
    environment = {**os.environ, "KUBECONFIG": str(data / "admin.kubeconfig"), "HOME": str(tmp_path)}

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [kubectl_binary, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            input=stdin,
        )

    def kubectl(*arguments: str, stdin: str | None = None) -> str:
        done = run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as process, ExitStack() as stack:
        stack.callback(process.terminate)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready ")
        kubectl("apply", "--filename=-", stdin="\n---\n".join(map(json.dumps, objects)))
        for name in ("web", "refused", "target"):
            kubectl("run", name, "--image=nginx")
        kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s")
        assert kubectl("logs", "web") == "hello\n"
        assert kubectl("exec", "web", "--", "sh", "-c", "echo $WHO; pwd") == "kwok\n/tmp\n"
        followed = stack.enter_context(
            subprocess.Popen(
                [kubectl_binary, "attach", "web"],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(followed.kill)
        assert followed.stdout is not None
        shown = False
        for number in range(100):
            with file.open("a") as appended:
                appended.write(f"2026-11-29T10:00:00.000000001Z stdout F line {number}\n")
            shown = bool(select.select([followed.stdout], [], [], 0.2)[0])
            if shown:
                break
        assert shown
        assert followed.stdout.readline().startswith("line ")
        address = kubectl("get", "pod", "target", "--output=jsonpath={.status.podIP}")
        forward = of_kwok(
            "PortForward", "web", forwards=[{"ports": [8080], "target": {"address": address, "port": 80}}]
        )
        kubectl("apply", "--filename=-", stdin=json.dumps(forward))

        def forwarded(name: str) -> subprocess.Popen[str]:
            started = subprocess.Popen(
                [kubectl_binary, "port-forward", f"pod/{name}", ":8080"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(started)
            stack.callback(started.kill)
            return started

        def port_of(started: subprocess.Popen[str]) -> str:
            assert started.stdout is not None
            found = re.search(r"127\.0\.0\.1:(\d+)", started.stdout.readline())
            assert found is not None
            return found[1]

        port = port_of(forwarded("web"))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/hostname", timeout=TIMEOUT) as answer:
            assert answer.read() == b"target\n"
        refused = forwarded("refused")
        with pytest.raises(OSError, match=r".*"):
            urllib.request.urlopen(f"http://127.0.0.1:{port_of(refused)}/", timeout=TIMEOUT)
        assert refused.stderr is not None
        assert "commands of PortForward objects are not run" in refused.stderr.readline() + refused.stderr.readline()
        assert "300m" in kubectl("top", "pod", "web")
