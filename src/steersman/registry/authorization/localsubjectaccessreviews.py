"""LocalSubjectAccessReviews: access of a user in one namespace."""

from __future__ import annotations

from steersman.api.authorization.v1 import LocalSubjectAccessReview
from steersman.authorization.attributes import Attributes
from steersman.authorization.review_validation import validate_local_subject_access_review
from steersman.authorization.reviews import review_attributes, subject_of
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.status import bad_request
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.registry.authorization.review import require_valid, review_access
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.work.offloading import offload


async def create(services: Services, ctx: Context, review: LocalSubjectAccessReview) -> LocalSubjectAccessReview:
    """Return the review with its status. Raises StatusError (422, 400)."""
    review.metadata.namespace = review.metadata.namespace or ctx.action.namespace
    attributes = await offload(_attributes, review, ctx.action.namespace)
    review.status = await review_access(services.authorizer, attributes)
    return review


def _attributes(review: LocalSubjectAccessReview, namespace: str) -> Attributes:
    """Return the attributes of a review in a namespace. Raises StatusError (422, 400)."""
    require_valid(validate_local_subject_access_review(review))
    if review.metadata.namespace != namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    spec = review.spec
    return review_attributes(subject_of(spec), spec.resource_attributes, spec.non_resource_attributes)


LOCAL_SUBJECT_ACCESS_REVIEWS = Resource(
    kind=built_in(LocalSubjectAccessReview),
    plural="localsubjectaccessreviews",
    verbs=("create",),
    name_validator=name_is_path_segment,
    answerer=create,
)
