"""Some of Kubernetes' conformance tests on servers that share an etcd (tools/conformance), where all is built."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import ROOT
from tests.tools.one_etcd.programs import needed
from tools.aggregated_server.command import CACHE, MODULE
from tools.conformance.clusters import PROGRAMS
from tools.one_etcd.servers import KUBERNETES, STEERSMAN

_FOCUS = "|".join(
    (
        r"should be able to convert a non homogeneous list of CRs",
        r"ResourceQuota should create .* life of a configMap",
        r"should manage the lifecycle of an event",
        r"Watchers should receive events on concurrent watches in same order",
    )
)
"""Names of tests of conversion webhooks, of a controller, of writes and of watches, which take a minute."""


@pytest.mark.slow
@pytest.mark.parametrize("servers", [(STEERSMAN, STEERSMAN), (STEERSMAN, KUBERNETES)], ids=",".join)
def test_they_pass_over_two_servers(servers: tuple[str, str]) -> None:
    needed(servers, "kube-controller-manager", "kube-scheduler", "kubectl")
    if not (PROGRAMS / "conformance.test").exists() or not (CACHE / MODULE.rpartition("@")[2]).exists():
        pytest.skip("the tests are not built: python -m tools.conformance builds them")
    command = [sys.executable, "-m", "tools.conformance", f"--on-etcd={','.join(servers)}", f"--focus={_FOCUS}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "all: 4 of 4 passed" in done.stdout, done.stdout[-5000:]
    assert done.returncode == 0
