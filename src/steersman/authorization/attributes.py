"""What an authorizer judges: who wants to do what to which thing (k8s.io/apiserver `authorizer.Attributes`)."""

from __future__ import annotations

from dataclasses import dataclass

from steersman.authentication.user import UserInfo
from steersman.machinery.identity.action import Action
from steersman.machinery.selectors import fields, labels


@dataclass(slots=True)
class Attributes:
    """One action of a user to judge. With a `path` it is about that and no resource, and its verb counts alone.

    The name of the action is empty where the request names no object, and holds the one of `metadata.name=` in a field
    selector. The selectors are those that limit a list, watch or deletecollection; one that could not be read is empty,
    or holds what could be read of it, and its error text is kept.
    """

    user: UserInfo
    action: Action
    path: str | None = None
    field_selector: tuple[fields.Requirement, ...] = ()
    field_selector_error: str = ""
    label_selector: tuple[labels.Requirement, ...] = ()
    label_selector_error: str = ""

    @property
    def read_only(self) -> bool:
        """True for the verbs that change nothing."""
        return self.action.verb in ("get", "list", "watch")
