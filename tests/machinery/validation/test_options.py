"""Request options and the selectors in objects."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.meta.v1 import (
    CreateOptions,
    DeleteOptions,
    LabelSelector,
    LabelSelectorRequirement,
    ListOptions,
    PatchOptions,
    Preconditions,
    TableOptions,
    UpdateOptions,
)
from steersman.machinery.errors.field import Path
from steersman.machinery.validation import options, selectors

UNPROVIDED = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
WITH_CONTINUE = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"
NEEDS_MATCH = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
NEEDS_INITIAL = (
    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
)


def told(errors: Any) -> Any:
    return list(map(str, errors))


@pytest.mark.parametrize(
    ("members", "errors"),
    [
        ({}, []),
        ({"resource_version_match": "Exact", "resource_version": "5"}, []),
        ({"resource_version_match": "NotOlderThan", "resource_version": "0"}, []),
        ({"resource_version_match": "Exact"}, [UNPROVIDED]),
        (
            {"resource_version_match": "Sometimes"},
            [
                UNPROVIDED,
                'resourceVersionMatch: Unsupported value: "Sometimes": supported values: "Exact", "NotOlderThan", ""',
            ],
        ),
        ({"resource_version_match": "Exact", "resource_version": "5", "continue_": "x"}, [WITH_CONTINUE]),
        (
            {"resource_version_match": "Exact", "resource_version": "0"},
            ['resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'],
        ),
        (
            {"send_initial_events": False},
            ["sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"],
        ),
        ({"watch": True}, []),
        ({"watch": True, "send_initial_events": True, "resource_version_match": "NotOlderThan"}, []),
        ({"watch": True, "send_initial_events": True}, [NEEDS_MATCH]),
        ({"watch": True, "resource_version_match": "NotOlderThan"}, [NEEDS_INITIAL]),
        (
            {"watch": True, "send_initial_events": True, "resource_version_match": "Exact", "continue_": "x"},
            [
                NEEDS_MATCH,
                'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"',
                WITH_CONTINUE,
            ],
        ),
    ],
)
def test_list_options(members: dict[str, Any], errors: list[Any]) -> None:
    assert told(options.validate_list_options(ListOptions(**members))) == errors


def test_initial_events_can_be_switched_off() -> None:
    asked = ListOptions(watch=True, send_initial_events=True, resource_version_match="NotOlderThan")
    text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    assert told(options.validate_list_options(asked, watch_list=False)) == [f"sendInitialEvents: Forbidden: {text}"]


@pytest.mark.parametrize(
    ("members", "errors"),
    [
        ({}, []),
        ({"propagation_policy": "Foreground", "dry_run": ["All"], "grace_period_seconds": 0}, []),
        ({"dry_run": ["All", "x"]}, ['dryRun: Unsupported value: ["All","x"]: supported values: "All"']),
        (
            {"propagation_policy": "Odd"},
            [
                'propagationPolicy: Unsupported value: "Odd": '
                'supported values: "Foreground", "Background", "Orphan", "nil"'
            ],
        ),
        (
            {"propagation_policy": "Orphan", "orphan_dependents": False},
            ['propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set'],
        ),
    ],
)
def test_delete_options(members: dict[str, Any], errors: list[Any]) -> None:
    assert told(options.validate_delete_options(DeleteOptions(**members))) == errors


def test_deleting_the_unreadable_goes_with_nothing_else() -> None:
    asked = DeleteOptions(
        ignore_store_read_error_with_cluster_breaking_potential=True,
        dry_run=["All"],
        grace_period_seconds=0,
        preconditions=Preconditions(),
    )
    text = "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with ."
    assert told(options.validate_delete_options(asked)) == [
        f"{text}dryRun",
        f"{text}gracePeriodSeconds",
        f"{text}preconditions",
    ]


@pytest.mark.parametrize(
    ("kind", "check"),
    [(CreateOptions, options.validate_write_options), (UpdateOptions, options.validate_write_options)],
)
def test_write_options(kind: Any, check: Any) -> None:
    assert told(check(kind(dry_run=["All"], field_manager="m", field_validation="Strict"))) == []
    assert told(check(kind(dry_run=[""], field_manager="a\a", field_validation="Bad"))) == [
        'fieldManager: Invalid value: "a\\a": invalid character U+0007 (at position 1)',
        'dryRun: Unsupported value: [""]: supported values: "All"',
        'fieldValidation: Unsupported value: "Bad": supported values: "", "Ignore", "Strict", "Warn"',
    ]


def test_patch_options() -> None:
    def check(*, apply: Any, **members: Any) -> Any:
        return told(options.validate_patch_options(PatchOptions(**members), apply=apply))

    assert check(apply=True) == ["fieldManager: Required value: is required for apply patch"]
    assert check(apply=True, field_manager="m", force=True) == []
    assert check(apply=False) == []
    assert check(apply=False, force=False) == ["force: Forbidden: may not be specified for non-apply patch"]


def test_table_options() -> None:
    assert told(options.validate_table_options(TableOptions(include_object="Metadata"))) == []
    assert told(options.validate_table_options(TableOptions(include_object="x"))) == [
        "includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or empty"
    ]


def expression(operator: Any, *values: Any, key: Any = "k") -> Any:
    return LabelSelectorRequirement(key=key, operator=operator, values=list(values))


@pytest.mark.parametrize(
    ("requirement", "errors"),
    [
        (expression("In", "a"), []),
        (expression("DoesNotExist"), []),
        (
            expression("NotIn"),
            ["s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
        ),
        (
            expression("Exists", "a"),
            [
                "s.matchExpressions[0].values: Forbidden: "
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ],
        ),
        (expression("Gt"), ['s.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator']),
    ],
)
def test_label_selector_operators(requirement: Any, errors: list[Any]) -> None:
    selector = LabelSelector(match_expressions=[requirement])
    assert told(selectors.validate_label_selector(selector, Path("s"))) == errors


def test_label_selector_keys_and_values() -> None:
    selector = LabelSelector(match_labels={"a": "-"}, match_expressions=[expression("In", "ok", "-", key="")])
    fields = [error.field for error in selectors.validate_label_selector(selector, Path("s"))]
    key, value = "s.matchExpressions[0].key", "s.matchExpressions[0].values[1]"
    assert fields == ["s.matchLabels", key, key, value]


def test_absent_label_selector_is_fine() -> None:
    assert told(selectors.validate_label_selector(None, Path("s"))) == []
    assert not selectors.label_selector_has_invalid_label_value(None)


def test_values_stored_unchecked_are_let_through() -> None:
    selector = LabelSelector(match_expressions=[expression("In", "-"), expression("Later")])
    assert selectors.label_selector_has_invalid_label_value(selector)
    lenient = selectors.LabelSelectorOptions(allow_invalid_label_value=True, allow_unknown_operator=True)
    assert told(selectors.validate_label_selector(selector, Path("s"), lenient)) == []
    assert len(told(selectors.validate_label_selector(selector, Path("s")))) == 2
