"""Tests of `--controllers`."""

from __future__ import annotations

import pytest

from steersman.controllers.all import CONTROLLERS
from steersman.controllers.selection import selected


def names(*given: str) -> list[str]:
    return [each.name for each in selected(given)]


def test_all_are_those_that_are_on_by_default() -> None:
    off = {"bootstrap-signer-controller", "token-cleaner-controller"}
    assert {each.name for each in CONTROLLERS} - set(names("*")) == off


def test_one_is_named_or_left_out() -> None:
    assert names("job-controller") == ["job-controller"]
    assert "job-controller" not in names("*", "-job-controller")
    assert "token-cleaner-controller" in names("*", "token-cleaner-controller")
    assert "job-controller" in names("job-controller", "-job-controller")  # what is said first counts
    assert names() == []


def test_others_are_refused() -> None:
    for each in ("nothing", "-nothing"):
        with pytest.raises(ValueError, match=f'"{each}" is not in the list of known controllers'):
            selected([each])
