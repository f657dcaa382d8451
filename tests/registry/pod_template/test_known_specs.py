"""Tests that cached checks of pod specs give the same errors and warnings as the first ones."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core import v1 as core
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.field import Path
from steersman.registry.pod_template.known_specs import unless_passed
from steersman.registry.pod_template.validation.leniency import pod_options
from steersman.registry.pod_template.validation.pods import validate_pod_create
from steersman.registry.pod_template.warnings import warnings_for_pod

STRICT = pod_options(None, is_pod=True)
CONTAINER: dict[str, Any] = {
    "name": "web",
    "image": "example.com/web:1",
    "imagePullPolicy": "Always",
    "terminationMessagePolicy": "File",
}
SPEC: dict[str, Any] = {
    "containers": [CONTAINER],
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
}


def pod(annotations: dict[str, str] | None = None, name: str = "a", **spec: Any) -> core.Pod:
    """Return a defaulted pod whose spec has these members too."""
    return from_plain(
        core.Pod, {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {**SPEC, **spec}}
    )


def errors(made: core.Pod, *, allow_privileged: bool = True) -> list[str]:
    """Return the fields of the errors of a new pod."""
    options = pod_options(None, is_pod=True, allow_privileged=allow_privileged)
    return [error.field for error in validate_pod_create(made, options)]


def test_a_check_that_passed_is_not_repeated_for_an_equal_spec() -> None:
    asked = []

    def findings(found: list[str]) -> Any:
        asked.append(found)
        yield from found

    for found in ([], ["unseen"]):
        assert list(unless_passed(pod(hostname="passed").spec, "check", findings(found))) == []
    for check, spec in (("other", pod(hostname="passed").spec), ("check", pod(hostname="else").spec)):
        assert list(unless_passed(spec, check, findings(["found"]))) == ["found"]
    assert len(asked) == 3


def test_findings_are_told_each_time() -> None:
    for _ in range(3):
        assert errors(pod(restartPolicy="Sometimes")) == ["spec.restartPolicy"]
        assert len(list(warnings_for_pod(pod(terminationGracePeriodSeconds=-1)))) == 1


def test_an_equal_spec_is_invalid_under_other_options() -> None:
    privileged = pod(containers=[{**CONTAINER, "securityContext": {"privileged": True}}])
    for _ in range(2):
        assert errors(privileged) == []
        assert errors(privileged, allow_privileged=False) == ["spec.containers[0].securityContext.privileged"]


def test_errors_that_depend_on_the_name_are_found_for_each_pod() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [
        {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}},
        {"name": "w", "persistentVolumeClaim": {"claimName": "b-v"}},
    ]
    assert errors(pod(name="a", volumes=volumes)) == []
    assert errors(pod(name="b", volumes=volumes)) == ["spec.volumes[1].persistentVolumeClaim.claimName"]


@pytest.mark.parametrize("key", ["security.alpha.kubernetes.io/sysctls", "seccomp.security.alpha.kubernetes.io/pod"])
def test_annotations_cause_warnings_about_a_spec_that_caused_none(key: str) -> None:
    assert list(warnings_for_pod(pod())) == []
    assert list(warnings_for_pod(pod({"note": "none"}))) == []
    assert len(list(warnings_for_pod(pod({key: "x"})))) == 1


def test_errors_name_the_path_of_the_spec() -> None:
    assert [error.field for error in validate_pod_create(pod(dnsPolicy="x"), STRICT)] == [
        str(Path("spec") / "dnsPolicy")
    ]
