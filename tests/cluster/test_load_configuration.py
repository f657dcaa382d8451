"""Curves, usage and metrics in the configuration file of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.api.core.v1 import Container, Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.cluster.configuration import Configuration, ConfigurationError

NOON = 1767700800.0
FILE = """
curves:
- name: day
  file: day.csv
- name: week
  file: week.yaml
  repeat: 168h
  interpolation: step
- name: burst
  points: {"0": 0, 90s: "1500m"}
  repeat: 3m
usage:
- {namespace: shop, selector: app=web, cpu: curves.day / replicas, memory: 64Mi}
metrics:
- {name: hits, resource: pods, value: curves.week}
- {name: queue, labels: {queue: mail}, value: 3}
"""
DAY = "time,cores\n# comment\n0:00,1\n\n12:00:00, 4000m\n"
WEEK = "0: 5\n120h: 1\n"


def load(folder: Path, text: str = FILE) -> Configuration:
    (folder / "day.csv").write_text(DAY)
    (folder / "week.yaml").write_text(WEEK)
    (folder / "cluster.yaml").write_text(text)
    return Configuration.load(folder / "cluster.yaml")


def test_a_file_describes_curves_usage_and_metrics(tmp_path: Path) -> None:
    found = load(tmp_path).simulated_load
    assert {name: curve.at(NOON) for name, curve in found.curves.items()} == {"day": 4.0, "week": 5.0, "burst": 0.0}
    metadata = ObjectMeta(name="w", namespace="shop", labels={"app": "web"})
    assert found.used(Pod(metadata=metadata), Container(name="c"), "cpu", NOON) == 4 * 10**9
    assert found.used(Pod(metadata=metadata), Container(name="c"), "memory", NOON) == (64 << 20) * 10**9
    assert found.used(Pod(), Container(name="c"), "memory", NOON) is None
    assert list(found.external("any", "queue")) == [({"queue": "mail"}, "3")]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("curves: [{name: a}]", "curve a: needs either points or a file"),
        ("curves: [{name: a, file: none.csv}]", "none.csv"),
        ("curves: [{name: a, points: {x: 1}}]", "curve a: x is no time: 8:30, 90m and 5400 are"),
        ("curves: [{name: a, points: {'8:61': 1}}]", "8:61 is no time"),
        ("curves: [{name: a, points: {'8:00': much}}]", "curve a: much is no number or quantity"),
        ("curves: [{name: a, points: {'25:00': 1}}]", "before the end of the period"),
        ("curves: [{name: a, points: {'0': 1}, repeat: often}]", 'invalid duration "often"'),
        ("curves: [{name: a, points: {'0': 1}}, {name: a, points: {'0': 1}}]", "two curves are called a"),
        ("usage: [{cpu: curves.day * 2}]", "found no matching overload"),
        ("usage: [{cpu: day / replicas}]", "usage[0].cpu: ERROR"),
        (
            "curves: [{name: day, points: {'0': 1}}]\nusage: [{cpu: curves.dy}]",
            "curves.dy: no curve 'dy'; known are day, did you mean day?",
        ),
        ("metrics: [{name: a, value: curves.day}]", "no curve 'day'"),
        ("usage: [{namespace: a}]", "needs cpu or memory"),
        ("usage: [{cpu: 1, selector: '=='}]", "selector =="),
        ("metrics: [{name: a, value: 1, resource: pods, labels: {a: b}}]", "only external metrics"),
        ("metrics: [{name: a, value: 1, selector: a=b}]", "a selector is for objects of a resource"),
        ("metrics: [{name: a}]", "value"),
        ("devices: [{driver: a b, devices: [{name: x}]}]", "devices[0]: spec.driver: Invalid value"),
        (
            "devices: [{driver: d, devices: [{name: x, capacity: {memory: {value: forty}}}]}]",
            "devices[0]: quantities must match",
        ),
    ],
)
def test_errors_name_the_file_and_the_cause(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, text)
    assert "cluster.yaml: " in str(refused.value)
    assert error in str(refused.value)


def test_devices_are_read_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("devices: [{driver: d, count: 2, devices: [{name: x, capacity: {memory: {value: 1Gi}}}]}]")
    assert Configuration.load(path).devices.drivers == {"d"}


@pytest.mark.parametrize(
    ("csv", "error"),
    [("0:00\n", "day.csv:1: needs a time and a value"), ("0,1\n0,2\n", "day.csv:2: there are two values at 0")],
)
def test_errors_in_files_of_points_name_the_line(tmp_path: Path, csv: str, error: str) -> None:
    load(tmp_path)
    (tmp_path / "day.csv").write_text(csv)
    with pytest.raises(ConfigurationError) as refused:
        Configuration.load(tmp_path / "cluster.yaml")
    assert error in str(refused.value)
