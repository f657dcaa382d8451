"""The explanation of an allowed or refused request, as far as the user may read rights."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from steersman.api.authentication.v1 import SelfSubjectReview
from steersman.api.authorization.v1 import (
    ResourceRule,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
    SubjectAccessReview,
    SubjectAccessReviewStatus,
)
from steersman.api.rbac.v1 import PolicyRule
from steersman.authentication.user import (
    SERVICE_ACCOUNT_PREFIX,
    SYSTEM_MASTERS,
    UserInfo,
    authenticated,
    service_account_groups,
)
from steersman.authorization.access_review import review_spec
from steersman.authorization.attributes import Attributes
from steersman.client.client import Client
from steersman.client.resources import (
    SELF_SUBJECT_ACCESS_REVIEWS,
    SELF_SUBJECT_REVIEWS,
    SELF_SUBJECT_RULES_REVIEWS,
    SUBJECT_ACCESS_REVIEWS,
)
from steersman.explain.access import allowing, allows, near_misses, read_policy, user_text, verdict_of
from steersman.explain.access_grants import suggestions_for
from steersman.explain.finding import (
    Evidence,
    Explanation,
    Finding,
    Reference,
    Severity,
    at_field,
    error,
    explanation,
    note,
    warning,
)
from steersman.explain.kind_names import UnknownKind, find_resource
from steersman.explain.world import LiveWorld, Unreadable, World
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action

_REVIEW: Final = "SubjectAccessReview"
_NAMELESS: Final = "system:anonymous"


class AccessQuery(Struct, frozen=True):
    """A request that a user may want to send: `resource` is as in a rule, or a path that begins with a slash.

    Without `user` the request is the caller's own. `namespace` is "" for all namespaces.
    """

    verb: str
    resource: str
    name: str = ""
    namespace: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()


class _Answer(Struct, frozen=True):
    """The server's answer to an access review; None for `allowed` if it could not be asked."""

    allowed: bool | None
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    error: str = ""


async def explain_access(world: World, query: AccessQuery) -> Explanation:
    """Return the explanation of a request. Raises UnknownKind, StatusError, Unreachable."""
    user = await _user_of(world, query)
    attributes = await _attributes(world, query, user)
    subject = Reference(SUBJECT_ACCESS_REVIEWS.api_version, _REVIEW, attributes.action.namespace, user.name)
    answer = await _ask(world, query, attributes, subject)
    findings: list[Finding] = []
    allowed = answer.allowed
    try:
        policy = await read_policy(world)
    except Unreadable as problem:
        text = f"{problem}; roles and bindings tell who may do what, and without them only the server's answer is known"
        findings.append(Finding(Severity.UNKNOWN, "Unreadable", text))
        findings += await _own_rules(world, query, attributes)
    else:
        by_rbac = SYSTEM_MASTERS in user.groups or (await verdict_of(policy, attributes)).allowed
        allowed = by_rbac if allowed is None else allowed
        found = allowing(policy, attributes) if allowed else near_misses(policy, attributes)
        if allowed:
            findings += found
        else:
            suggestions = await suggestions_for(policy, attributes)
            text = "no binding of the user or its groups has a rule that allows it"
            groups = at_field(subject, ".spec.groups", list(user.groups))
            findings += [error("NotAllowed", text, groups, suggestions=suggestions), *found]
        findings += _disagreement(answer, by_rbac=by_rbac)
    if answer.error:
        findings.append(Finding(Severity.UNKNOWN, "ReviewRefused", answer.error))
    return explanation(subject, _summary(attributes, allowed), findings)


def _summary(attributes: Attributes, allowed: bool | None) -> str:
    action = attributes.action
    what = attributes.path or action.group_resource
    if attributes.path is None and action.subresource:
        what = f"{action.group_resource}, subresource {action.subresource}"
    where = "" if attributes.path or not action.namespace else f" in namespace {action.namespace}"
    name = f" {action.name}" if action.name else ""
    may = {True: "may", False: "may not", None: "may or may not"}[allowed]
    return f"{user_text(attributes.user)} {may} {action.verb} {what}{name}{where}"


async def _user_of(world: World, query: AccessQuery) -> UserInfo:
    """Return the user of a query with the groups that the server gives it. Raises StatusError, Unreachable."""
    if query.user:
        groups = query.groups
        if query.user.startswith(SERVICE_ACCOUNT_PREFIX):
            namespace = query.user.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")[0]
            groups = (*groups, *service_account_groups(namespace))
        return authenticated(UserInfo(query.user, groups=tuple(dict.fromkeys(groups))))
    if not isinstance(world, LiveWorld):
        raise UnknownKind("a dump has no user of its own: name one with --as")
    review = await world.client.create(SELF_SUBJECT_REVIEWS, SelfSubjectReview())
    user_info = review.status.user_info
    return UserInfo(user_info.username or _NAMELESS, user_info.uid, tuple(user_info.groups or ()))


async def _attributes(world: World, query: AccessQuery, user: UserInfo) -> Attributes:
    """Return the authorizer's attributes of a request. Raises UnknownKind."""
    if query.resource.startswith("/"):
        return Attributes(user, Action(verb=query.verb), query.resource)
    resource, _, subresource = query.resource.partition("/")
    found = find_resource(resource, (await world.resources()).served).resource
    namespace = query.namespace if found.namespaced else ""
    action = Action(
        verb=query.verb,
        group=found.group,
        version=found.version,
        resource=found.plural,
        subresource=subresource,
        namespace=namespace,
        name=query.name,
    )
    return Attributes(user, action)


async def _ask(world: World, query: AccessQuery, attributes: Attributes, subject: Reference) -> _Answer:
    """Return the server's own answer, which knows all of its authorizers."""
    if not isinstance(world, LiveWorld):
        return _Answer(None)
    try:
        status = await _review(world.client, query, attributes)
    except StatusError as refused:
        return _Answer(None, error=f"the server was not asked for its own answer: {refused}")
    evidence = at_field(subject, ".status", {"allowed": status.allowed, "reason": status.reason})
    return _Answer(status.allowed, status.reason, (evidence,))


async def _review(client: Client, query: AccessQuery, attributes: Attributes) -> SubjectAccessReviewStatus:
    spec = review_spec(attributes)
    if not query.user:
        own = SelfSubjectAccessReviewSpec(
            resource_attributes=spec.resource_attributes, non_resource_attributes=spec.non_resource_attributes
        )
        return (await client.create(SELF_SUBJECT_ACCESS_REVIEWS, SelfSubjectAccessReview(spec=own))).status
    return (await client.create(SUBJECT_ACCESS_REVIEWS, SubjectAccessReview(spec=spec))).status


def _disagreement(answer: _Answer, *, by_rbac: bool) -> list[Finding]:
    """Return the finding that another authorizer than RBAC decided."""
    if answer.allowed is None or answer.allowed == by_rbac:
        return []
    reason = answer.reason or "no reason given"
    if answer.allowed:
        return [
            note("OtherAuthorizer", f"the server allows it by another authorizer than RBAC: {reason}", *answer.evidence)
        ]
    text = f"roles and bindings allow it, and the server refuses it by another authorizer: {reason}"
    return [warning("OtherAuthorizer", text, *answer.evidence)]


async def _own_rules(world: World, query: AccessQuery, attributes: Attributes) -> list[Finding]:
    """Return findings from the caller's own rules (SelfSubjectRulesReview), which every user may read."""
    if query.user or not isinstance(world, LiveWorld) or attributes.path is not None:
        return []
    spec = SelfSubjectRulesReviewSpec(namespace=attributes.action.namespace or "default")
    try:
        review = await world.client.create(SELF_SUBJECT_RULES_REVIEWS, SelfSubjectRulesReview(spec=spec))
    except StatusError as refused:
        return [Finding(Severity.UNKNOWN, "ReviewRefused", str(refused))]
    findings: list[Finding] = []
    subject = Reference(SELF_SUBJECT_RULES_REVIEWS.api_version, "SelfSubjectRulesReview")
    for number, rule in enumerate(review.status.resource_rules or ()):
        if allows(_policy_rule(rule), attributes):
            evidence = at_field(subject, f".status.resourceRules[{number}]", rule)
            findings.append(note("AllowedByRule", "one of your rules allows it", evidence))
        elif attributes.action.resource in {each.partition("/")[0] for each in rule.resources or ()}:
            evidence = at_field(subject, f".status.resourceRules[{number}]", rule)
            text = f"one of your rules is about {attributes.action.resource}: it allows {', '.join(rule.verbs or ())}"
            findings.append(note("RelatedRule", text, evidence))
    if review.status.incomplete:
        text = f"the server's list of your rules is incomplete: {review.status.evaluation_error or 'no reason given'}"
        findings.append(Finding(Severity.UNKNOWN, "RulesIncomplete", text))
    return findings


def _policy_rule(rule: ResourceRule) -> PolicyRule:
    return PolicyRule(
        verbs=rule.verbs,
        api_groups=list(rule.api_groups or ()),
        resources=list(rule.resources or ()),
        resource_names=list(rule.resource_names or ()),
    )
