"""What an authorizer judges: who wants to do what to which thing (k8s.io/apiserver `authorizer.Attributes`)."""

from __future__ import annotations

from dataclasses import dataclass

from steersman.authentication.user import UserInfo
from steersman.machinery.selectors import fields, labels


@dataclass(slots=True)
class Attributes:
    """One action to judge. With `resource_request` the resource fields count, without it `path` does.

    `verb` is a Kubernetes verb (get, list, create...) on resources and a lower-case HTTP method on other paths.
    `name` is empty where the request names no object, and holds the one of `metadata.name=` in a field selector.
    The selectors are those that limit a list, watch or deletecollection; one that could not be read is empty, or holds
    what could be read of it, and its error text is kept.
    """

    user: UserInfo
    verb: str = ""
    namespace: str = ""
    api_group: str = ""
    api_version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    resource_request: bool = False
    path: str = ""
    field_selector: tuple[fields.Requirement, ...] = ()
    field_selector_error: str = ""
    label_selector: tuple[labels.Requirement, ...] = ()
    label_selector_error: str = ""

    @property
    def read_only(self) -> bool:
        """True for the verbs that change nothing."""
        return self.verb in ("get", "list", "watch")
