"""Fields of values that cannot be decoded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.manifests import DEPLOYMENT, report


@pytest.mark.parametrize(
    ("right", "wrong", "field"),
    [
        ("cpu: 200m}, limits", "cpu: 2x}, limits", "spec.template.spec.containers[0].resources.requests[cpu]"),
        ("replicas: 3", "replicas: three", "spec.replicas"),
        ("image: nginx", "command: nginx", "spec.template.spec.containers[0].command"),
        (
            "image: nginx",
            "ports: [{containerPort: 1}, {containerPort: a}]",
            "spec.template.spec.containers[0].ports[1]",
        ),
        ("labels: {app: web}", "labels: {app: web, level: 3}", "spec.template.metadata.labels[level]"),
    ],
)
async def test_the_line_of_a_malformed_value(tmp_path: Path, right: str, wrong: str, field: str) -> None:
    assert right in DEPLOYMENT
    text = DEPLOYMENT.replace(right, wrong, 1)
    found = [each for each in (await report(tmp_path, text)).findings if each.rule.value == "Malformed"]
    assert [each.field.startswith(field) for each in found] == [True], found
    assert found[0].line == text[: text.index(wrong)].count("\n") + 1
