"""Paths and values of metrics that users configure."""

from __future__ import annotations

import pytest

from steersman.endpoints.request_info import read_request_info
from steersman.simulated_metrics.configured_metrics import Subject, external_values, subject_of

ROOT = "/apis/custom.metrics.k8s.io/v1beta2"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("namespaces/a/pods/*/hits", Subject("a", "pods", "*", "hits")),
        ("namespaces/a/deployments.apps/web/hits", Subject("a", "deployments.apps", "web", "hits")),
        ("namespaces/a/metrics/hits", Subject("", "namespaces", "a", "hits")),
        ("nodes/n/hits", Subject("", "nodes", "n", "hits")),
        ("namespaces/a/pods/web", None),
        ("namespaces/a/pods", None),
        ("namespaces/a/pods/web/hits/more", None),
        ("namespaces/a/metrics/hits/more", None),
        ("nodes/n", None),
        ("watch/namespaces/a/pods/web/hits", None),
    ],
)
def test_paths_name_objects_and_a_metric(path: str, expected: Subject | None) -> None:
    assert subject_of(read_request_info("GET", f"{ROOT}/{path}", "")) == expected


def test_lines_are_values_with_labels() -> None:
    text = "5\nqueue=mail,zone=a 1500m\nqueue=mail zone=a 1\nnothing\nqueue 4\n\n  7"
    assert list(external_values(text, lambda said: {"a * 2": "3"}.get(said))) == [
        ({}, "5"),
        ({"queue": "mail", "zone": "a"}, "1500m"),
        ({}, "7"),
    ]


def test_lines_are_bounded() -> None:
    assert len(list(external_values("1\n" * 5000, lambda said: None))) == 1000
