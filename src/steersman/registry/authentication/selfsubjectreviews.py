"""SelfSubjectReviews: the identity of the request user."""

from __future__ import annotations

from steersman.api.authentication.v1 import SelfSubjectReview, SelfSubjectReviewStatus
from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.built_in import built_in
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.machinery.values import times
from steersman.registry.authentication.userinfo import user_info
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Resource


async def create(services: Services, ctx: Context, review: SelfSubjectReview) -> SelfSubjectReview:
    """Return a review with the request user; the content of `review` is ignored."""
    return SelfSubjectReview(
        metadata=ObjectMeta(creation_timestamp=times.now()),
        status=SelfSubjectReviewStatus(user_info=user_info(ctx.user)),
    )


SELF_SUBJECT_REVIEWS = Resource(
    kind=built_in(SelfSubjectReview),
    plural="selfsubjectreviews",
    namespaced=False,
    verbs=("create",),
    name_validator=name_is_path_segment,
    answerer=create,
)
