"""SelfSubjectRulesReviews: the rules of the request user in a namespace, as far as they can be listed."""

from __future__ import annotations

from typing import Final

from steersman.api.authorization.v1 import SelfSubjectRulesReview
from steersman.authorization.reviews import rules_review_status
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.status import bad_request
from steersman.machinery.validation.object_meta import name_is_path_segment
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from steersman.work.offloading import mark_large, offload

_MANY: Final = 100
"""Number of rules above which the answer counts as large."""


async def create(services: Services, ctx: Context, review: SelfSubjectRulesReview) -> SelfSubjectRulesReview:
    """Return a review with the rules. Raises StatusError (400) without a namespace."""
    namespace = review.spec.namespace
    if not namespace:
        raise bad_request("no namespace on request")
    resolved = await services.rule_resolver.rules_for(ctx.user, namespace)
    if len(resolved.resource_rules) + len(resolved.non_resource_rules) > _MANY:
        mark_large()
    return SelfSubjectRulesReview(status=await offload(rules_review_status, resolved))


SELF_SUBJECT_RULES_REVIEWS = Resource(
    kind=built_in(SelfSubjectRulesReview),
    plural="selfsubjectrulesreviews",
    namespaced=False,
    verbs=("create",),
    name_validator=name_is_path_segment,
    answerer=create,
)
