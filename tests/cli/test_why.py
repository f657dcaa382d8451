"""`steersman why`: explanations of a dump, the overview, and texts of a hostile cluster."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from steersman.cli import main

SERVICE: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
HOSTILE = "x\x1b]0;pwned\x07\u202e\n" + "y" * 3_000


def pod(name: str, *, ready: bool) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "reason": "", "message": HOSTILE}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "b"}]},
        "status": {"phase": "Running", "conditions": conditions},
    }


def why(folder: Path, objects: list[dict[str, Any]], *arguments: str) -> Result:
    file = folder / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return CliRunner().invoke(main, ["why", *arguments, "--dump", str(file)])


@pytest.mark.parametrize("output", ["text", "wide", "json"])
def test_hostile_texts_are_inert(tmp_path: Path, output: str) -> None:
    service = {**SERVICE, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": HOSTILE}]}}
    found = why(tmp_path, [service, pod("a", ready=False)], "svc/web", "-o", output)
    assert found.exit_code == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(found.output)
    assert "TargetPortMissing" in found.output or "\\x1b" in found.output


def test_suggested_commands_are_quoted_for_a_shell(tmp_path: Path) -> None:
    name = "$(touch pwned)"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    found = why(tmp_path, [account], "sa", name)
    assert "kubectl create token '$(touch pwned)' -n default" in found.output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["svc/gone"], 'services "gone" not found'),
        (["servicee/web"], "did you mean service?"),
        (["svc"], "KIND/NAME or KIND NAME"),
        (["svc/web", "--as", "joe"], "are for can-i"),
        (["can-i", "get"], "can-i VERB RESOURCE"),
        (["can-i", "get", "pods"], "name one with --as"),
        (["can-i", "get", "pods", "--as-group", "a"], "--as-group needs --as"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, arguments: list[str], problem: str) -> None:
    found = why(tmp_path, [SERVICE], *arguments)
    assert found.exit_code == 1
    assert problem in found.stderr
    assert found.stderr.count("\n") == 1


def test_the_overview_lists_the_worst_first(tmp_path: Path) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "status": {"phase": "Pending"},
    }
    service = {**SERVICE, "spec": {"selector": {"app": "web"}}}
    found = why(tmp_path, [claim, service, pod("a", ready=True)])
    lines = found.output.splitlines()
    assert lines[0].split() == ["error", "service/web", "-n", "default", "no", "ready", "endpoint"]
    assert lines[1].startswith("warning  persistentvolumeclaim/data")
    assert lines[-1] == "look closer: steersman why service/web -n default"
    document = json.loads(why(tmp_path, [claim, service], "-o", "json").output)
    assert [each["subject"]["name"] for each in document["items"]] == ["web", "data"]
    assert "nothing is unhealthy" in why(tmp_path, [pod("a", ready=True)]).output


@pytest.mark.slow
def test_the_overview_of_10_000_pods_takes_less_than_two_seconds_of_cpu(tmp_path: Path) -> None:
    objects = [pod(f"p-{number}", ready=number % 2 == 0) for number in range(10_000)]
    began = time.process_time()
    found = why(tmp_path, objects)
    assert time.process_time() - began < 6  # 1 s on an idle machine, with the writing of the dump
    assert "and 4960 more" in found.output
