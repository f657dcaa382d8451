"""Validation of flow schemas and priority levels (kubernetes `pkg/apis/flowcontrol/validation`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from steersman.api.flowcontrol.v1 import (
    ExemptPriorityLevelConfiguration,
    FlowSchema,
    FlowSchemaCondition,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationCondition,
    QueuingConfiguration,
    ResourcePolicyRule,
    Subject,
)
from steersman.flowcontrol.bootstrap_configuration import FLOW_SCHEMAS, PRIORITY_LEVELS
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, not_supported, required
from steersman.machinery.validation.leaves import validate_name, validate_unique
from steersman.machinery.validation.object_meta import name_is_dns_label, name_is_dns_subdomain
from steersman.registry.printing.internal_form import internal_text

MAX_PRECEDENCE: Final = 10_000
MAX_QUEUES: Final = 10_000_000
MAX_HASH_BITS: Final = 60
"""Bits of a flow's hash that the choice of its queues may consume."""

DISTINGUISHERS: Final = ("ByNamespace", "ByUser")
VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
SUBJECT_KINDS: Final = ("Group", "ServiceAccount", "User")
LEVEL_TYPES: Final = ("Exempt", "Limited")
RESPONSE_TYPES: Final = ("Queue", "Reject")
PRESERVE_ZERO: Final = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
"""An annotation that older API versions reserve."""

_SPEC: Final = Path("spec")
_NAMES: Final = {
    "User": ("user", "user"),
    "Group": ("group", "group"),
    "ServiceAccount": ("service_account", "serviceAccount"),
}
_PERCENT: Final = "must be between 0 and 100, inclusive"


def validate_flow_schema(schema: FlowSchema) -> Iterator[FieldError]:
    """Validate a flow schema; the two mandatory schemas have one valid form only."""
    spec, name = schema.spec, schema.metadata.name
    yield from _validate_precedence(spec.matching_precedence, name)
    method = spec.distinguisher_method
    if method is not None and method.type not in DISTINGUISHERS:
        yield not_supported(_SPEC.child("distinguisherMethod", "type"), internal_text(method), DISTINGUISHERS)
    level, path = spec.priority_level_configuration.name, _SPEC.child("priorityLevelConfiguration", "name")
    if not level:
        yield required(path, "must reference a priority level")
    for message in name_is_dns_subdomain(level, False) if level else ():
        yield invalid(path, level, message)
    for index, rule in enumerate(spec.rules):
        yield from _validate_rule(rule, (_SPEC / "rules")[index])
    fixed = FLOW_SCHEMAS.get(name)
    if fixed is not None and spec != fixed:
        yield invalid(_SPEC, internal_text(spec), f"spec of '{name}' must equal the fixed value")
    yield from validate_conditions(schema.status.conditions)


def _validate_precedence(precedence: int, name: str) -> Iterator[FieldError]:
    path = _SPEC / "matchingPrecedence"
    if precedence <= 0:
        yield invalid(path, precedence, "must be a positive value")
    if precedence > MAX_PRECEDENCE:
        yield invalid(path, precedence, f"must not be greater than {MAX_PRECEDENCE}")
    if precedence == 1 and name != "exempt":
        yield invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")


def validate_conditions(
    conditions: Sequence[FlowSchemaCondition | PriorityLevelConfigurationCondition],
) -> Iterator[FieldError]:
    """Validate conditions of either kind: each type occurs once."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        path = Path("status", "conditions")[index] / "type"
        yield from validate_unique(condition.type, seen, path)
        if not condition.type:
            yield required(path)


def _validate_rule(rule: PolicyRulesWithSubjects, path: Path) -> Iterator[FieldError]:
    if not rule.subjects:
        yield required(path / "subjects", "subjects must contain at least one value")
    for index, subject in enumerate(rule.subjects or ()):
        yield from _validate_subject(subject, (path / "subjects")[index])
    if not rule.resource_rules and not rule.non_resource_rules:
        yield required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, resource_rule in enumerate(rule.resource_rules):
        yield from _validate_resource_rule(resource_rule, (path / "resourceRules")[index])
    for index, other_rule in enumerate(rule.non_resource_rules):
        yield from _validate_non_resource_rule(other_rule, (path / "nonResourceRules")[index])


def _validate_subject(subject: Subject, path: Path) -> Iterator[FieldError]:
    expected = _NAMES.get(subject.kind)
    if expected is None:
        yield not_supported(path / "kind", subject.kind, SUBJECT_KINDS)
        return
    attribute, name = expected
    value = getattr(subject, attribute)
    if value is None:
        yield required(path / name, f"{name} is required when subject kind is '{subject.kind}'")
    elif subject.service_account is not None and subject.kind == "ServiceAccount":
        account = subject.service_account
        yield from _validate_account(account.namespace, account.name, path / name)
    elif not value.name:
        yield required(path / name / "name")
    for kind in ("ServiceAccount", "User", "Group"):
        attribute, name = _NAMES[kind]
        if kind != subject.kind and getattr(subject, attribute) is not None:
            yield forbidden(path / name, f"{name} is forbidden when subject kind is not '{kind}'")


def _validate_account(namespace: str, name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path / "name")
    elif name != "*":
        yield from validate_name(name_is_dns_subdomain, name, path / "name")
    if not namespace:
        yield required(path / "namespace", "must specify namespace for service account")
    for message in name_is_dns_label(namespace, False) if namespace else ():
        yield invalid(path / "namespace", namespace, message)


def _validate_verbs(verbs: list[str] | None, path: Path) -> Iterator[FieldError]:
    if not verbs:
        yield required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        if len(verbs) > 1:
            yield invalid(path, verbs, "if '*' is present, must not specify other verbs")
    elif any(verb not in VERBS for verb in verbs):
        yield not_supported(path, verbs, VERBS)


def _validate_names(names: list[str] | None, path: Path, one: str, many: str) -> Iterator[FieldError]:
    if not names:
        yield required(path, f"resource rules must supply at least one {one}")
    elif len(names) > 1 and "*" in names:
        yield invalid(path, names, f"if '*' is present, must not specify other {many}")


def _validate_resource_rule(rule: ResourcePolicyRule, path: Path) -> Iterator[FieldError]:
    yield from _validate_verbs(rule.verbs, path / "verbs")
    yield from _validate_names(rule.api_groups, path / "apiGroups", "api group", "api groups")
    yield from _validate_names(rule.resources, path / "resources", "resource", "resources")
    namespaces, at = rule.namespaces or [], path / "namespaces"
    if not namespaces and not rule.cluster_scope:
        yield required(at, "resource rules that are not cluster scoped must supply at least one namespace")
    elif "*" in namespaces:
        if len(namespaces) > 1:
            yield invalid(at, namespaces, "if '*' is present, must not specify other namespaces")
    else:
        for index, namespace in enumerate(namespaces):
            for message in name_is_dns_label(namespace, False):
                detail = f"each member of this list must be '*' or a DNS-1123 label; {message}"
                yield invalid(at[index], namespace, detail)


def _validate_non_resource_rule(rule: NonResourcePolicyRule, path: Path) -> Iterator[FieldError]:
    yield from _validate_verbs(rule.verbs, path / "verbs")
    urls, at = rule.non_resource_urls or [], path / "nonResourceURLs"
    if not urls:
        yield required(at, "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        if len(urls) > 1:
            yield invalid(at, urls, "if '*' is present, must not specify other non-resource URLs")
    else:
        for index, url in enumerate(urls):
            if error := _url_error(url):
                yield invalid(at[index], url, error)


def _url_error(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    wildcards = url.count("*")
    if wildcards > 1 or (wildcards == 1 and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def validate_priority_level(level: PriorityLevelConfiguration) -> Iterator[FieldError]:
    """Validate a priority level; the two mandatory levels have one valid form only."""
    if PRESERVE_ZERO in level.metadata.annotations:
        yield forbidden(Path("metadata", "annotations"), f"annotation '{PRESERVE_ZERO}' is forbidden")
    yield from _validate_level_spec(level)
    name, spec = level.metadata.name, level.spec
    fixed = PRIORITY_LEVELS.get(name)
    if fixed is not None:
        if name == "exempt":
            if replace(spec, exempt=fixed.exempt) != fixed:
                detail = f"spec of '{name}' except the 'spec.exempt' field must equal the fixed value"
                yield invalid(_SPEC, internal_text(spec), detail)
        elif spec != fixed:
            yield invalid(_SPEC, internal_text(spec), f"spec of '{name}' must equal the fixed value")
    yield from validate_conditions(level.status.conditions)


def _validate_level_spec(level: PriorityLevelConfiguration) -> Iterator[FieldError]:
    spec = level.spec
    if (level.metadata.name == "exempt") != (spec.type == "Exempt"):
        yield invalid(_SPEC / "type", spec.type, "must be 'Exempt' if and only if `name` is 'exempt'")
    if spec.type == "Exempt":
        if spec.limited is not None:
            yield forbidden(_SPEC / "limited", "must be nil if the type is not Limited")
        if spec.exempt is not None:
            yield from _validate_exempt(spec.exempt, _SPEC / "exempt")
    elif spec.type == "Limited":
        if spec.exempt is not None:
            yield forbidden(_SPEC / "exempt", "must be nil if the type is Limited")
        if spec.limited is None:
            yield required(_SPEC / "limited", "must not be empty when type is Limited")
        else:
            yield from _validate_limited(spec.limited, _SPEC / "limited")
    elif not spec.type:
        yield required(_SPEC / "type")
    else:
        yield not_supported(_SPEC / "type", spec.type, LEVEL_TYPES)


def _validate_exempt(exempt: ExemptPriorityLevelConfiguration, path: Path) -> Iterator[FieldError]:
    shares, percent = exempt.nominal_concurrency_shares, exempt.lendable_percent
    if shares is not None and shares < 0:
        yield invalid(path / "nominalConcurrencyShares", shares, "must be a non-negative integer")
    if percent is not None and not 0 <= percent <= 100:
        yield invalid(path / "lendablePercent", percent, _PERCENT)


def _validate_limited(limited: LimitedPriorityLevelConfiguration, path: Path) -> Iterator[FieldError]:
    shares, percent, limit = (
        limited.nominal_concurrency_shares,
        limited.lendable_percent,
        limited.borrowing_limit_percent,
    )
    if shares is not None and shares < 0:
        yield invalid(path / "nominalConcurrencyShares", shares, "must be a non-negative integer")
    yield from _validate_response(limited.limit_response, path / "limitResponse")
    if percent is not None and not 0 <= percent <= 100:
        yield invalid(path / "lendablePercent", percent, _PERCENT)
    if limit is not None and limit < 0:
        yield invalid(path / "borrowingLimitPercent", limit, "if specified, must be a non-negative integer")


def _validate_response(response: LimitResponse, path: Path) -> Iterator[FieldError]:
    if response.type == "Reject":
        if response.queuing is not None:
            yield forbidden(path / "queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif response.type == "Queue":
        if response.queuing is None:
            yield required(path / "queuing", "must not be empty if limited.limitResponse.type is Limited")
        else:
            yield from _validate_queuing(response.queuing, path / "queuing")
    elif not response.type:
        yield required(path / "type")
    else:
        yield not_supported(path / "type", response.type, RESPONSE_TYPES)


def _validate_queuing(queuing: QueuingConfiguration, path: Path) -> Iterator[FieldError]:
    queues, hand = queuing.queues, queuing.hand_size
    if queuing.queue_length_limit <= 0:
        yield invalid(path / "queueLengthLimit", queuing.queue_length_limit, "must be positive")
    if queues <= 0:
        yield invalid(path / "queues", queues, "must be positive")
    elif queues > MAX_QUEUES:
        yield invalid(path / "queues", queues, f"must not be greater than {MAX_QUEUES}")
    if hand <= 0:
        yield invalid(path / "handSize", hand, "must be positive")
    elif hand > queues:
        yield invalid(path / "handSize", hand, f"should not be greater than queues ({queues})")
    elif _entropy_bits(queues, hand) > MAX_HASH_BITS:
        detail = (
            f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        )
        yield invalid(path / "handSize", hand, detail)


def _entropy_bits(deck: int, hand: int) -> int:
    """Return the bits that select `hand` of `deck` queues for a flow, in order."""
    return math.ceil(math.log2(deck) * hand)
