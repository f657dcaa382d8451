"""Tests of the type generator: names, and that its output for the recorded facts equals the tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tools.generate.naming import attribute

FACTS = ROOT.parent / "shared" / "facts"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clusterIP", "cluster_ip"),
        ("podIPs", "pod_ips"),
        ("clientCIDR", "client_cidr"),
        ("nonResourceURLs", "non_resource_urls"),
        ("openAPIV3Schema", "open_api_v3_schema"),
        ("fieldsV1", "fields_v1"),
        ("insecureSkipTLSVerify", "insecure_skip_tls_verify"),
        ("x-kubernetes-list-map-keys", "x_kubernetes_list_map_keys"),
        ("$ref", "ref"),
        ("continue", "continue_"),
        ("type", "type"),
        ("Port", "port"),
    ],
)
def test_members_are_named_in_snake_case(name: str, expected: str) -> None:
    assert attribute(name) == expected


@pytest.mark.skipif(not FACTS.is_dir(), reason="needs the facts the types are generated from")
def test_the_generated_files_are_those_the_facts_give(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    source = ROOT / "src" / "steersman" / "api"
    out = tmp_path / "src" / "steersman" / "api"
    out.mkdir(parents=True)
    documents = "src/steersman/openapi/data"
    shutil.copytree(ROOT / documents, tmp_path / documents)
    program = [sys.executable, "-m", "tools.generate_types"]
    subprocess.run(program, cwd=tmp_path, check=True, timeout=60, env={"FACTS": str(FACTS)})
    made = {path.relative_to(out): path.read_bytes() for path in out.rglob("*.*") if path.is_file()}
    assert len(made) > 80
    for path, content in made.items():
        assert (source / path).read_bytes() == content, path
