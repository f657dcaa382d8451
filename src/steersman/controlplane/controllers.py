"""Controllers of kube-controller-manager's that this server can run by itself, and which of them are to be run.

kube-apiserver runs none of them, and so does this server unless `--controllers` names them, in the words of
kube-controller-manager's flag: `*` for all, `foo` for that one, `-foo` for all but that one beside `*`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

POLICY_STATUS: Final = "validatingadmissionpolicy-status-controller"
CONTROLLERS: Final = (POLICY_STATUS,)
_ALL: Final = "*"


def check_controllers(given: Sequence[str]) -> None:
    """Raises ValueError for a name that no controller has."""
    for each in given:
        if each != _ALL and each.removeprefix("-") not in CONTROLLERS:
            raise ValueError(f'"{each}" is not in the list of known controllers')


def is_enabled(name: str, given: Sequence[str]) -> bool:
    """Whether a controller is to be run; what is said first of it counts."""
    said = next((each for each in given if each in (name, f"-{name}")), "")
    return said == name or (not said and _ALL in given)
