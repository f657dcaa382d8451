"""Tests of the names of metrics."""

from __future__ import annotations

from steersman.api.meta.v1 import LabelSelector, LabelSelectorRequirement
from steersman.controllers.autoscaling.evaluation import as_go


def test_selectors_are_shown_as_go_prints_them() -> None:
    assert as_go(None) == "nil"
    requirement = LabelSelectorRequirement(key="c", operator="In", values=["d", "e"])
    shown = as_go(LabelSelector(match_labels={"b": "1", "a": "2"}, match_expressions=[requirement]))
    assert shown == (
        "&LabelSelector{MatchLabels:map[string]string{a: 2,b: 1,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:c,Operator:In,Values:[d e],},},}"
    )
