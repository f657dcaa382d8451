"""Which controllers run: what `--controllers` says, in kube-controller-manager's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steersman.controllers.all import CONTROLLERS
from steersman.controllers.controller import Controller
from steersman.machinery.suggestions import known_names_hint

ALL: Final = "*"


def selected(given: Sequence[str], elsewhere: Sequence[str] = ()) -> tuple[type[Controller[Any]], ...]:
    """Those that are named: `*` for all that are on by default, `foo` for that one, `-foo` for none such.

    What is said first of one counts; `elsewhere` are names of others, for messages. Raises ValueError for a
    name that no controller has.
    """
    known = {each.name for each in CONTROLLERS}
    for each in given:
        if each != ALL and each.removeprefix("-") not in known:
            names = known_names_hint(each.removeprefix("-"), {*known, *elsewhere})
            raise ValueError(f'"{each}" is not in the list of known controllers{names}')
    return tuple(each for each in CONTROLLERS if _is_selected(each, given))


def _is_selected(controller: type[Controller[Any]], given: Sequence[str]) -> bool:
    said = next((each for each in given if each in (controller.name, f"-{controller.name}")), "")
    return said == controller.name or (not said and ALL in given and controller.on_by_default)
