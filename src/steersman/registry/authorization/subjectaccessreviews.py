"""SubjectAccessReviews: may somebody do something?"""

from __future__ import annotations

from steersman.api.authorization.v1 import SubjectAccessReview
from steersman.authorization.attributes import Attributes
from steersman.authorization.review_validation import validate_subject_access_review
from steersman.authorization.reviews import review_attributes, subject_of
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.registry.authorization.judgement import judge, require_valid
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.work.offloading import offload


async def create(services: Services, ctx: Context, review: SubjectAccessReview) -> SubjectAccessReview:
    """Answers with the review and its status. Raises StatusError (422)."""
    # Cluster-scoped: a namespace in the metadata is ignored.
    review.metadata.namespace = ""
    attributes = await offload(_asked, review)
    review.status = await judge(services.authorizer, attributes)
    return review


def _asked(review: SubjectAccessReview) -> Attributes:
    """What a review asks. Raises StatusError (422)."""
    require_valid(validate_subject_access_review(review))
    spec = review.spec
    return review_attributes(subject_of(spec), spec.resource_attributes, spec.non_resource_attributes)


SUBJECT_ACCESS_REVIEWS = Resource(
    kind=built_in(SubjectAccessReview),
    plural="subjectaccessreviews",
    namespaced=False,
    verbs=("create",),
    name_validator=name_is_path_segment,
    answerer=create,
)
