"""Selection of controllers by the syntax of kube-controller-manager's flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.controlplane.controllers import POLICY_STATUS, check_controllers, is_enabled
from steersman.controlplane.options import Options


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), False),
        (("*",), True),
        ((POLICY_STATUS,), True),
        ((f"-{POLICY_STATUS}",), False),
        (("*", f"-{POLICY_STATUS}"), False),
        ((f"-{POLICY_STATUS}", "*"), False),
        ((POLICY_STATUS, f"-{POLICY_STATUS}"), True),
        ((f"-{POLICY_STATUS}", POLICY_STATUS), False),
    ],
)
def test_what_is_said_first_of_one_counts(given: tuple[str, ...], expected: bool) -> None:
    check_controllers(given)
    assert is_enabled(POLICY_STATUS, given) is expected


@pytest.mark.parametrize("name", ["x", "-x", "-*", "-", "**"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not in the list of known controllers"):
        check_controllers(("*", name))


def test_none_runs_unless_it_is_named() -> None:
    assert Options(data_dir=Path()).controllers == ()
