"""The operator of examples/sites and its own tests, in Go, on `steersman up`."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.cluster_process import ClusterProcess
from tests.e2e.go_programs import build_tests

pytestmark = pytest.mark.slow

SOURCE = ROOT / "examples" / "sites"
TIMEOUT = 300.0


def test_its_tests_pass_on_a_cluster(tmp_path: Path) -> None:
    program = build_tests(SOURCE, "./controller", tmp_path / "controller.test")
    with ClusterProcess(tmp_path / "data", "--storage=memory", "--nodes=2") as cluster:
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "USE_EXISTING_CLUSTER": "true"}
        done = subprocess.run(
            [program, "-test.v"], cwd=SOURCE / "controller", env=environment, capture_output=True, text=True,
            timeout=TIMEOUT, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    passed = re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE)
    assert passed == re.findall(
        r"^func (Test[^M]\w+)", (SOURCE / "controller" / "controller_test.go").read_text(), re.M
    )
