"""Deprecated node labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.meta.v1 import LabelSelector
from steersman.machinery.errors.field import Path

DEPRECATED: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
"""Label -> text of the warning."""


def selector_warnings(selector: LabelSelector | None, path: Path) -> Iterator[str]:
    """Yield warnings about deprecated labels in a node selector."""
    if selector is None:
        return
    for index, expression in enumerate(selector.match_expressions):
        if text := DEPRECATED.get(expression.key):
            yield f"{(path / 'matchExpressions')[index] / 'key'}: {expression.key} is {text}"
    for label in selector.match_labels:
        if text := DEPRECATED.get(label):
            yield f"{path / 'matchLabels' / label}: {text}"
