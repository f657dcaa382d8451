"""Tests of the operator of examples/sites, and its own tests, in Go, on `steersman up`."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from steersman.cli.envtest import assets
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


def passed(program: Path, **environment: str) -> list[str]:
    """Return the names of the operator's tests that pass. A failure of any of them fails this test."""
    done = subprocess.run(
        [program, "-test.v"],
        cwd=SOURCE / "controller",
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE)


ALL = re.findall(r"^func (Test[^M]\w+)", (SOURCE / "controller" / "controller_test.go").read_text(), re.MULTILINE)


def test_its_tests_pass_on_a_cluster_that_runs(program: Path, tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--storage=memory", "--nodes=2", verb="up") as cluster:
        assert passed(program, KUBECONFIG=str(cluster.kubeconfig), USE_EXISTING_CLUSTER="true") == ALL


def test_its_tests_pass_on_one_that_envtest_starts(program: Path, tmp_path: Path) -> None:
    assert passed(program, KUBEBUILDER_ASSETS=str(assets.make(tmp_path / "home", 2)), USE_EXISTING_CLUSTER="") == ALL
