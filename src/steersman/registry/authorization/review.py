"""Validation and status of all access reviews."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.api.authorization.v1 import SubjectAccessReviewStatus
from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Authorizer, decide
from steersman.authorization.reviews import review_status
from steersman.machinery.errors.field import FieldError
from steersman.machinery.errors.status import invalid
from steersman.machinery.identity.schema import GroupKind


def require_valid(errors: Iterable[FieldError]) -> None:
    """Raise StatusError (422) if there are errors. It names no kind, as upstream's does not."""
    if found := list(errors):
        raise invalid(GroupKind("authorization.k8s.io", ""), "", found)


async def review_access(authorizer: Authorizer, attributes: Attributes) -> SubjectAccessReviewStatus:
    """Return the status of a review, with the authorizer's verdict for a request."""
    return review_status(await decide(authorizer, attributes), attributes)
