"""Errors for actions that nobody allowed, in Kubernetes' wording."""

from __future__ import annotations

from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Verdict
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError, forbidden


def forbidden_error(attributes: Attributes, reason: str = "") -> StatusError:
    """Return a StatusError 403 for an action; `reason` comes from the authorizers."""
    message = forbidden_message(attributes)
    if reason:
        message = f"{message}: {reason}"
    return forbidden(attributes.action.group_resource, attributes.action.name, message)


def refusal(attributes: Attributes, verdict: Verdict) -> StatusError:
    """Return a StatusError 403 for a secondary check of a request, with the verdict's error and reason."""
    return forbidden_error(attributes, ": ".join(text for text in (verdict.error, verdict.reason) if text))


def forbidden_message(attributes: Attributes) -> str:
    """Return `User "u" cannot get resource "pods/log" in API group "" in the namespace "n"`, escaped for HTML."""
    return _unmarked(_message(attributes))


def internal_error_text(request_uri: str, error: str) -> str:
    """Return the plain text of a 500 response to a request whose authorization failed with an error."""
    return _unmarked(f"Internal Server Error: {quote(request_uri)}: {error}")


def _message(attributes: Attributes) -> str:
    action = attributes.action
    who = f"User {quote(attributes.user.name)} cannot {action.verb}"
    if attributes.path is not None:
        return f"{who} path {quote(attributes.path)}"
    resource = f"{action.resource}/{action.subresource}" if action.subresource else action.resource
    what = f"{who} resource {quote(resource)} in API group {quote(action.group)}"
    if action.namespace:
        return f"{what} in the namespace {quote(action.namespace)}"
    return f"{what} at the cluster scope"


def _unmarked(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
