"""How every access review comes to its status."""

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
    """Raises StatusError (422) if there are errors; it names no kind, as reviews are refused everywhere."""
    if found := list(errors):
        raise invalid(GroupKind("authorization.k8s.io", ""), "", found)


async def judge(authorizer: Authorizer, attributes: Attributes) -> SubjectAccessReviewStatus:
    """Asks the authorizer as a request would."""
    return review_status(await decide(authorizer, attributes), attributes)
