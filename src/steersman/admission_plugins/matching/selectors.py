"""Namespace and object selectors of webhooks and policies (apiserver `predicates/namespace`, `predicates/object`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.admission_plugins.namespaces import NAMESPACE
from steersman.machinery.errors.status import StatusError, internal, not_found
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.selectors.labels import EVERYTHING, Selector, SelectorError, from_label_selector
from steersman.rest.objects import Objects

_NAMESPACES: Final = GroupResource("", "namespaces")

ParsedSelector = Selector | StatusError
"""A selector, or the error of one that cannot be parsed: upstream parses it at each request and fails then."""


def parse_selector(selector: Any) -> ParsedSelector:
    """Return the selector of a `meta/v1 LabelSelector`; None selects everything."""
    if selector is None:
        return EVERYTHING
    try:
        return from_label_selector(selector)
    except SelectorError as error:
        return internal(error)


class SelectorMatcher:
    """Checks requests against selectors."""

    def __init__(self, namespaces: Objects) -> None:
        self._namespaces: Final = namespaces

    async def refresh_namespace(self, attributes: Attributes) -> None:
        """Read the namespace of a request from storage if it is unknown, because another server may just have created
        it.

        Upstream also reads it again before it reports a missing namespace. Raises StatusError 429, 500.
        """
        namespace = attributes.action.namespace
        if namespace and not self._namespaces.is_cached("", namespace) and not _is_namespace_write(attributes):
            await self._namespaces.refresh("", namespace)

    def matches(self, attributes: Attributes, in_namespaces: ParsedSelector, of_objects: ParsedSelector) -> bool:
        """Return True if both selectors match a request that rules have matched.

        Raises the StatusError of a selector that cannot be parsed, and StatusError 404 for a missing namespace, unless
        the object selector does not match.
        """
        failure: StatusError | None = None
        try:
            if not self._namespace_matches(attributes, in_namespaces):
                return False
        except StatusError as error:
            failure = error
        if not _object_matches(attributes, of_objects):
            return False
        if failure is not None:
            raise failure
        if isinstance(of_objects, StatusError):
            raise of_objects
        return True

    def _namespace_matches(self, attributes: Attributes, selector: ParsedSelector) -> bool:
        action = attributes.action
        about_namespaces = action.resource == "namespaces"
        if not action.namespace and not about_namespaces:
            return True
        if isinstance(selector, StatusError):
            raise selector
        if selector.empty:
            return True
        if _is_namespace_write(attributes):
            labels: Mapping[str, str] | None = attributes.obj.metadata.labels
        else:
            found = self._namespaces.read_cached("", action.namespace, NAMESPACE)
            labels = None if found is None else found.labels
        if labels is None:
            raise not_found(_NAMESPACES, action.namespace)
        return selector.matches(labels)


def _is_namespace_write(attributes: Attributes) -> bool:
    """Return True if the request's object is a namespace, whose own new labels count."""
    action = attributes.action
    return action.resource == "namespaces" and not action.subresource and attributes.operation in (CREATE, UPDATE)


def _object_matches(attributes: Attributes, selector: ParsedSelector) -> bool:
    """Return True if the selector matches the new or the old object. An unparsable selector counts as a match here."""
    if isinstance(selector, StatusError) or selector.empty:
        return True
    matches: Callable[[Mapping[str, str]], bool] = selector.matches
    for each in (attributes.obj, attributes.old):
        metadata = getattr(each, "metadata", None)
        if metadata is not None and matches(metadata.labels):
            return True
    return False
