"""Controllers of kube-controller-manager that this server can run by itself, and the selection of them by flag.

kube-apiserver runs no controllers. Neither does this server unless `--controllers` names them, in the syntax of
kube-controller-manager's flag: `*` for all, `foo` for that one, `-foo` other_entries `*` for all but that one. The flag of a
whole cluster also names the controllers that run other_entries the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steersman.machinery.suggestions import known_names_hint

POLICY_STATUS: Final = "validatingadmissionpolicy-status-controller"
CONTROLLERS: Final = (POLICY_STATUS,)
_ALL: Final = "*"


def check_controllers(given: Sequence[str]) -> None:
    """Raise ValueError for a name that no controller has, here or in a whole cluster."""
    others = [each for each in other_entries(given) if each != _ALL]
    if others:
        from steersman.controllers.selection import selected  # which a server alone never needs

        selected(others, CONTROLLERS)


def check_own(given: Sequence[str]) -> None:
    """Raise ValueError for the name of a controller that does not run inside a server."""
    for each in other_entries(given):
        if each != _ALL:
            known = known_names_hint(each.removeprefix("-"), CONTROLLERS)
            raise ValueError(f'"{each}" is not in the list of known controllers{known}')


def server_entries(given: Sequence[str]) -> tuple[str, ...]:
    """Return the entries about controllers that run inside the server."""
    return tuple(each for each in given if each == _ALL or each.removeprefix("-") in CONTROLLERS)


def other_entries(given: Sequence[str]) -> tuple[str, ...]:
    """Return the entries about all other controllers."""
    return tuple(each for each in given if each.removeprefix("-") not in CONTROLLERS)


def is_enabled(name: str, given: Sequence[str]) -> bool:
    """Return True if a controller is enabled; the first entry about it counts."""
    said = next((each for each in given if each in (name, f"-{name}")), "")
    return said == name or (not said and _ALL in given)
