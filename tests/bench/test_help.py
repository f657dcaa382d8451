"""Every benchmark and tool tells what it does when it is asked, and does nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import ROOT

PROGRAMS = [
    "bench.autoscalers",
    "bench.cache_checks",
    "bench.clusters",
    "bench.compaction_micro",
    "bench.first_list",
    "bench.first_pod",
    "bench.fixtures",
    "bench.managed_fields_micro",
    "bench.many_clusters",
    "bench.opening",
    "bench.protobuf_micro",
    "bench.scheduling",
    "bench.shared_micro",
    "bench.sizing",
    "bench.storage_micro",
    "tools.cluster_soak",
    "tools.conformance",
    "tools.controllers",
    "tools.crash_test",
    "tools.hostile",
    "tools.node_churn",
    "tools.one_etcd",
    "tools.request_path",
    "tools.scheduler_comparison",
    "tools.scheduler_comparison.on_a_large_cluster",
    "tools.soak",
    "tools.stage_comparison",
]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_help_is_told(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", program, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


def test_a_benchmark_that_is_not_there_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.storage_micro", "none"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "unknown benchmark 'none': choose from write, cache, fanout, memory" in done.stderr


@pytest.mark.slow
def test_a_list_of_cases_may_be_cut_short() -> None:
    listing = [sys.executable, "-m", "tools.hostile", "--list", "--kinds=headers,query,lists"]
    with subprocess.Popen(listing, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.readline()
        program.stdout.close()
        assert program.stderr.read() == ""
