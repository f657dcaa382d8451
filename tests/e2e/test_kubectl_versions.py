"""Tests of kubectl with a server of all versions: lists, explanations, and requests for a kind in several versions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

CLAIM = {
    "apiVersion": "resource.k8s.io/v1beta1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu"},
    "spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpus"}]}},
}


@pytest.fixture
def kubectl(kubectl_for: Any, make_server: Callable[..., Any], tmp_path: Path) -> Any:
    server = make_server("--runtime-config=api/all=true", folder=tmp_path / "data")
    server.start()
    return kubectl_for(server, "default")


def test_every_version_is_listed_and_explained(kubectl: Any) -> None:
    versions = set(kubectl("api-versions").split())
    assert {"resource.k8s.io/v1", "resource.k8s.io/v1beta1", "internal.apiserver.k8s.io/v1alpha1"} <= versions
    rows = [line.split() for line in kubectl("api-resources", "--no-headers").splitlines()]
    assert ["resourceclaims", "resource.k8s.io/v1", "true", "ResourceClaim"] in rows
    assert ["leasecandidates", "coordination.k8s.io/v1beta1", "true", "LeaseCandidate"] in rows
    assert ["devicetaintrules", "resource.k8s.io/v1beta2", "false", "DeviceTaintRule"] in rows
    text = kubectl("explain", "resourceclaims.spec.devices.requests", "--api-version=resource.k8s.io/v1beta1")
    assert "VERSION:    v1beta1" in text
    assert re.search(r"^ {2}deviceClassName\t<string>$", text, re.MULTILINE)
    assert "exactly\t" not in text


def test_an_object_is_applied_in_one_version_and_got_in_another(kubectl: Any) -> None:
    done = kubectl.run("apply", "-f", "-", stdin=json.dumps(CLAIM))
    assert done.stdout == "resourceclaim.resource.k8s.io/gpu created\n"
    assert (
        "Warning: resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+" in done.stderr
    )
    resourceclaims = kubectl.json("get", "resourceclaims", "gpu")
    assert resourceclaims["apiVersion"] == "resource.k8s.io/v1"
    assert resourceclaims["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpus"
    older = kubectl.json("get", "resourceclaims.v1beta1.resource.k8s.io", "gpu")
    assert older["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpus"
    labelled = {**CLAIM, "metadata": {"name": "gpu", "labels": {"a": "b"}}}
    assert kubectl.apply_file("apply", labelled) == "resourceclaim.resource.k8s.io/gpu configured\n"
    applied = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(labelled))
    assert applied == "resourceclaim.resource.k8s.io/gpu serverside-applied\n"
    assert kubectl("delete", "resourceclaims.v1beta2.resource.k8s.io", "gpu").startswith("resourceclaim")
