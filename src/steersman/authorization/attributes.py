"""What an authorizer judges: who wants to do what to which thing (k8s.io/apiserver `authorizer.Attributes`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from steersman.authentication.user import UserInfo
from steersman.machinery.identity.action import Action
from steersman.machinery.selectors import fields, labels

LONGEST_SELECTOR: Final = 4096
"""Characters of a selector that is read to judge a request; a longer one counts as one that cannot be read."""
TOO_LONG: Final = f"selectors of more than {LONGEST_SELECTOR} characters are not judged"


class Selectors(Struct, frozen=True):
    """What limits a list, watch or deletecollection. A selector that could not be read is empty, or holds what could be
    read of it, and its error text is kept."""

    fields: tuple[fields.Requirement, ...] = ()
    field_error: str = ""
    labels: tuple[labels.Requirement, ...] = ()
    label_error: str = ""


NO_SELECTORS: Final = Selectors()


class Attributes(Struct):
    """One action of a user to judge. With a `path` it is about that and no resource, and its verb counts alone.

    The name of the action is empty where the request names no object, and holds the one of `metadata.name=` in a field
    selector. `limits` are the selectors, or what reads them when an authorizer asks for them: most do not.
    """

    user: UserInfo
    action: Action
    path: str | None = None
    limits: Selectors | Callable[[], Selectors] = NO_SELECTORS

    @property
    def selectors(self) -> Selectors:
        """What limits the action."""
        if not isinstance(self.limits, Selectors):
            self.limits = self.limits()
        return self.limits

    @property
    def read_only(self) -> bool:
        """True for the verbs that change nothing."""
        return self.action.verb in ("get", "list", "watch")


def read_selectors(field_selector: str, label_selector: str, *, longest: int | None = None) -> Selectors:
    """Selectors out of their texts, "" for none; of more than `longest` characters they count as not readable."""
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
