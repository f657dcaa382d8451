"""Tests of the index of autoscalers by selected pods."""

from __future__ import annotations

from steersman.controllers.autoscaling.selectors import Selectors
from steersman.machinery.selectors import labels


def test_autoscalers_are_found_by_the_labels_of_pods() -> None:
    selectors = Selectors()
    selectors.put(("a", "one"), labels.parse("app=web"))
    selectors.put(("a", "two"), labels.parse("app in (web,db)"))
    selectors.put(("a", "three"), labels.parse("app=db"))
    selectors.put(("b", "other"), labels.parse("app=web"))
    assert selectors.selecting("a", [{"app": "web"}]) == [("a", "one"), ("a", "two")]
    assert selectors.selecting("a", [{"app": "web"}, {"app": "db"}]) == [("a", "one"), ("a", "three"), ("a", "two")]
    assert selectors.selecting("a", []) == []
    selectors.put(("a", "one"), labels.parse("app=mail"))
    selectors.remove(("a", "two"))
    selectors.remove(("a", "unknown"))
    assert selectors.selecting("a", [{"app": "web"}]) == []
    assert selectors.selecting("a", [{"app": "mail"}]) == [("a", "one")]
