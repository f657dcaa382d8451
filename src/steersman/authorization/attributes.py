"""Input of an authorizer: user, verb and resource or path of a request (k8s.io/apiserver `authorizer.Attributes`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from steersman.authentication.user import UserInfo
from steersman.machinery.identity.action import Action
from steersman.machinery.selectors import fields, labels

LONGEST_SELECTOR: Final = 4096
"""Limit of a selector's length in characters. Longer selectors are not parsed for authorization."""
TOO_LONG: Final = f"selectors of more than {LONGEST_SELECTOR} characters are not judged"


class Selectors(Struct, frozen=True):
    """Selectors of a list, watch or deletecollection.

    A selector that could not be parsed is empty, or has the requirements that could be parsed; its error is the text.
    """

    fields: tuple[fields.Requirement, ...] = ()
    field_error: str = ""
    labels: tuple[labels.Requirement, ...] = ()
    label_error: str = ""


NO_SELECTORS: Final = Selectors()


class Attributes(Struct):
    """One action of a user, for an authorizer.

    With a `path` the action is about a path instead of a resource, and only its verb counts. The action's name is empty
    if the request names no object; `metadata.name=` in a field selector counts as a name. `limits` are the selectors,
    or a function that parses them when an authorizer first needs them; most do not.
    """

    user: UserInfo
    action: Action
    path: str | None = None
    limits: Selectors | Callable[[], Selectors] = NO_SELECTORS

    @property
    def selectors(self) -> Selectors:
        """The parsed selectors of the action."""
        if not isinstance(self.limits, Selectors):
            self.limits = self.limits()
        return self.limits

    @property
    def read_only(self) -> bool:
        """True for the verbs get, list and watch."""
        return self.action.verb in ("get", "list", "watch")


def read_selectors(field_selector: str, label_selector: str, *, longest: int | None = None) -> Selectors:
    """Parse two selectors ("" for none). A selector of more than `longest` characters gets an error instead."""
    field_requirements: tuple[fields.Requirement, ...] = ()
    label_requirements: tuple[labels.Requirement, ...] = ()
    field_error = TOO_LONG if longest is not None and len(field_selector) > longest else ""
    label_error = TOO_LONG if longest is not None and len(label_selector) > longest else ""
    if field_selector and not field_error:
        try:
            field_requirements = tuple(fields.parse(field_selector).requirements)
        except ValueError as error:
            field_error = str(error)
    if label_selector and not label_error:
        try:
            label_requirements = tuple(labels.parse(label_selector).requirements)
        except ValueError as error:
            label_error = str(error)
    if not (field_requirements or label_requirements or field_error or label_error):
        return NO_SELECTORS
    return Selectors(field_requirements, field_error, label_requirements, label_error)
