"""Selection of the controllers to run, by kube-controller-manager's flag `--controllers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steersman.controllers.all import CONTROLLERS
from steersman.controllers.controller import Controller
from steersman.machinery.suggestions import known_names_hint

ALL: Final = "*"


def selected(selection: Sequence[str], elsewhere: Sequence[str] = ()) -> tuple[type[Controller[Any]], ...]:
    """Return the selected controllers: `*` selects all that are on by default, `foo` one, and `-foo` deselects one.

    The first entry for a controller decides. `elsewhere` are names of other components, for the suggestions in the
    error text. Raises ValueError for a name that no controller has.
    """
    known_names = {each.name for each in CONTROLLERS}
    for each in selection:
        if each != ALL and each.removeprefix("-") not in known_names:
            names = known_names_hint(each.removeprefix("-"), {*known_names, *elsewhere})
            raise ValueError(f'"{each}" is not in the list of known controllers{names}')
    return tuple(each for each in CONTROLLERS if _is_selected(each, selection))


def _is_selected(controller: type[Controller[Any]], selection: Sequence[str]) -> bool:
    match = next((each for each in selection if each in (controller.name, f"-{controller.name}")), "")
    return match == controller.name or (not match and ALL in selection and controller.on_by_default)
