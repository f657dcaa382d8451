"""Tests of the operator of examples/sites, and its own tests, in Go, on `steersman up`."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from steersman.cli.envtest import assets
from steersman.report.recording import recorded_requests
from steersman.report.report import Report
from steersman.testing import ServerProcess
from tests import ROOT
from tests.e2e.go_programs import build_tests

pytestmark = pytest.mark.slow

SOURCE = ROOT / "examples" / "sites"
TIMEOUT = 300.0


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled tests of the operator."""
    return build_tests(SOURCE, "./controller", tmp_path_factory.mktemp("sites") / "controller.test")


def run(program: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the operator's tests."""
    return subprocess.run(
        [program, "-test.v"],
        cwd=SOURCE / "controller",
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def passed(program: Path, **environment: str) -> list[str]:
    """Return the names of the operator's tests that pass. A failure of any of them fails this test."""
    done = run(program, **environment)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE)


ALL = re.findall(r"^func (Test[^M]\w+)", (SOURCE / "controller" / "controller_test.go").read_text(), re.MULTILINE)


def test_its_tests_pass_on_a_cluster_that_runs(program: Path, tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--storage=memory", "--nodes=2", verb="up") as cluster:
        assert passed(program, KUBECONFIG=str(cluster.kubeconfig), USE_EXISTING_CLUSTER="true") == ALL


def test_its_tests_pass_on_one_that_envtest_starts_also_with_the_least_role(program: Path, tmp_path: Path) -> None:
    programs = {"KUBEBUILDER_ASSETS": str(assets.make(tmp_path / "home", 2)), "USE_EXISTING_CLUSTER": ""}
    assert passed(program, **programs, STEERSMAN_REPORT=str(tmp_path / "requests")) == ALL
    role = Report(recorded_requests(tmp_path / "requests")).role()
    groups = [group for rule in role["rules"] for group in rule["apiGroups"]]
    assert set(groups) == {"", "apiextensions.k8s.io", "apps", "example.com"}
    file = tmp_path / "role.json"
    file.write_text(json.dumps(role))
    assert passed(program, **programs, STEERSMAN_ENVTEST_ROLE=str(file)) == ALL
    file.write_text(json.dumps({**role, "rules": role["rules"][:1]}))
    refused = run(program, **programs, STEERSMAN_ENVTEST_ROLE=str(file))
    assert refused.returncode == 1
    assert "is forbidden" in refused.stderr
