"""SelfSubjectAccessReviews: access of the request user."""

from __future__ import annotations

from steersman.api.authorization.v1 import SelfSubjectAccessReview
from steersman.authentication.user import UserInfo
from steersman.authorization.attributes import Attributes
from steersman.authorization.review_validation import validate_self_subject_access_review
from steersman.authorization.reviews import review_attributes
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.registry.authorization.review import require_valid, review_access
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.work.offloading import offload


async def create(services: Services, ctx: Context, review: SelfSubjectAccessReview) -> SelfSubjectAccessReview:
    """Return the review with its status. Raises StatusError (422)."""
    # The kind is cluster-scoped, so a namespace in the metadata is ignored.
    review.metadata.namespace = ""
    attributes = await offload(_attributes, ctx.user, review)
    review.status = await review_access(services.authorizer, attributes)
    return review


def _attributes(user: UserInfo, review: SelfSubjectAccessReview) -> Attributes:
    """Return the attributes of a review. Raises StatusError (422)."""
    require_valid(validate_self_subject_access_review(review))
    spec = review.spec
    return review_attributes(user, spec.resource_attributes, spec.non_resource_attributes)


SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    kind=built_in(SelfSubjectAccessReview),
    plural="selfsubjectaccessreviews",
    namespaced=False,
    verbs=("create",),
    name_validator=name_is_path_segment,
    answerer=create,
)
