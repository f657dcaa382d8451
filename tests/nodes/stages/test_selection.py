"""Choice of an object's stage, and its delay."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from steersman.nodes.stages.conditions import Conditions
from steersman.nodes.stages.declaration import Requirement, read_stage
from steersman.nodes.stages.selection import LONGEST_DELAY, Lifecycle, ObjectSnapshot, duration_of, is_met, weight_of
from tests.nodes.stages.samples import Plain, selecting, stage, where

NOW = 1_700_000_000.0


def lifecycle(*stages: Plain) -> Lifecycle:
    random = Random(1)
    found = Lifecycle(random, Conditions(random, "self"))
    for each in stages:
        found.add(read_stage(each))
    return found


def snapshot(**metadata: Any) -> ObjectSnapshot:
    obj = {"metadata": metadata, "status": {"phase": "Running"}}
    return ObjectSnapshot(json.dumps(obj), metadata.get("labels", {}), metadata.get("annotations", {}))


def draw(found: Lifecycle, obj: ObjectSnapshot, times: int = 2000) -> Counter[str]:
    stages = [found.stage_of(obj) for _ in range(times)]
    return Counter("" if each is None else each.name for each in stages)


@pytest.mark.parametrize(
    ("operator", "values", "found", "selected"),
    [
        ("In", ("a", "b"), ["c", "b"], True),
        ("In", ("a",), [], False),
        ("In", ("a",), None, False),
        ("In", ("true", "3"), [True], True),
        ("In", ("3",), [3], True),
        ("In", ("3",), [[3], {"a": 3}], False),
        ("NotIn", ("a",), None, True),
        ("NotIn", ("a",), ["a", "b"], False),
        ("NotIn", ("a",), ["b"], True),
        ("Exists", (), [False], True),
        ("Exists", (), [], False),
        ("Exists", (), None, False),
        ("DoesNotExist", (), [], True),
        ("DoesNotExist", (), None, True),
        ("DoesNotExist", (), [""], False),
    ],
)
def test_requirements(operator: Any, values: tuple[str, ...], found: Any, selected: bool) -> None:
    assert is_met(Requirement("", operator, values), found) is selected


def test_all_of_a_selector_has_to_hold_and_an_empty_one_selects_everything() -> None:
    found = lifecycle(
        stage(
            "all",
            selector=selecting(
                where(".status.phase", "In", "Running"), matchLabels={"a": "b"}, matchAnnotations={"c": "d"}
            ),
        ),
        stage("without"),
    )
    assert draw(found, snapshot(labels={"a": "b"}, annotations={"c": "d"}), 1) == {"all": 1}
    assert draw(found, snapshot(labels={"a": "b"}), 1) == {"": 1}
    assert draw(found, snapshot(labels={"a": "x"}, annotations={"c": "d"}), 1) == {"": 1}
    assert draw(lifecycle(stage("every", selector={})), snapshot(), 1) == {"every": 1}


def test_weights_say_how_likely_a_stage_is() -> None:
    weighed = {"expressionFrom": ".metadata.annotations.weight"}
    found = lifecycle(
        stage("one", selector={}, weight=1),
        stage("three", selector={}, weight=3),
        stage("none", selector={}, weight=0),
        stage("says", selector={}, weight=0, weightFrom=weighed),
    )
    counts = draw(found, snapshot())
    assert set(counts) == {"one", "three"}
    assert 2.4 < counts["three"] / counts["one"] < 3.7
    assert draw(found, snapshot(annotations={"weight": "1000000"}), 50) == {"says": 50}


def test_without_weights_all_are_equal_but_those_that_are_no_number() -> None:
    weighed = {"jq": {"expression": ".metadata.annotations.weight"}}
    found = lifecycle(stage("a", selector={}), stage("b", selector={}), stage("c", selector={}, weightFrom=weighed))
    assert set(draw(found, snapshot(), 200)) == {"a", "b", "c"}
    assert set(draw(found, snapshot(annotations={"weight": "x"}), 200)) == {"a", "b"}
    only = lifecycle(stage("c", selector={}, weightFrom=weighed))
    assert draw(only, snapshot(annotations={"weight": "0"}), 5) == {"c": 5}


@pytest.mark.parametrize(
    ("found", "weight"),
    [
        ([], 7),
        (None, 7),
        (["12"], 12),
        (["0x10"], 16),
        (["010"], 8),
        (["1_0"], 10),
        ([""], None),
        (["x"], None),
        (["0o"], None),
        (["-0o17"], -15),
        (["9" * 40], 2**63 - 1),
        ([3], 3),
        ([1e308], 2**63 - 1),
        ([float("-inf")], 1 - 2**63),
        ([float("nan")], 7),
        ([3.9], 3),
        ([True], 7),
        ([[1]], 7),
    ],
)
def test_weights_in_objects(found: Any, weight: int | None) -> None:
    assert weight_of(found, 7) == weight


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        ([], 5.0),
        (None, 5.0),
        (["1m30s"], 90.0),
        (["250ms"], 0.25),
        ([""], None),
        (["soon"], 5.0),
        ([3], 5.0),
        (["2023-11-14T22:13:50Z"], 30.0),
        (["2023-11-14T22:13:20.5Z"], 0.5),
    ],
)
def test_durations_in_objects(found: Any, seconds: float | None) -> None:
    assert duration_of(found, 5.0, NOW) == seconds


@pytest.mark.parametrize(
    ("delay", "least", "most"),
    [
        ({}, 0, 0),
        ({"durationMilliseconds": 1500}, 1.5, 1.5),
        ({"durationMilliseconds": 1000, "jitterDurationMilliseconds": 3000}, 1, 3),
        ({"durationMilliseconds": 3000, "jitterDurationMilliseconds": 1000}, 1, 1),
        ({"durationMilliseconds": 1000, "jitterDurationFrom": {"expressionFrom": ".metadata.annotations.none"}}, 1, 1),
        ({"durationFrom": {"expressionFrom": ".metadata.annotations.at"}}, 30, 30),
        ({"durationMilliseconds": 1000, "jitterDurationFrom": {"expressionFrom": ".metadata.annotations.at"}}, 1, 30),
        ({"durationFrom": {"expressionFrom": '"-5s"'}}, 0, 0),
        ({"durationFrom": {"expressionFrom": '"200000h"'}}, LONGEST_DELAY, LONGEST_DELAY),
        ({"durationMilliseconds": 9000, "durationFrom": {"expressionFrom": '""'}}, 0, 0),
    ],
)
def test_delays(delay: Plain, least: float, most: float) -> None:
    found = lifecycle(stage("s", selector={}, delay=delay))
    obj = snapshot(annotations={"at": "2023-11-14T22:13:50Z"})
    stages = found.stage_of(obj)
    assert stages is not None
    delays = [stages.delay(obj, NOW, found.random) for _ in range(100)]
    assert least <= min(delays) <= max(delays) <= most
    assert (len(set(delays)) == 1) is (least == most)
