"""Parser and validation of `--audit-policy-file`, a Policy of audit.k8s.io/v1, with upstream's messages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Final

from steersman.api.audit.v1 import GroupResources, Policy, PolicyRule
from steersman.audit.policy import LEVELS, STAGES, unknown_stages
from steersman.machinery.codec.configuration import read_document
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import FieldError, Path, aggregate, invalid, not_supported, quote, required
from steersman.machinery.go.os_errors import reason
from steersman.machinery.private_files import read_bounded
from steersman.machinery.validation.formats import is_dns1123_subdomain

logger = logging.getLogger(__name__)

_INTERNAL: Final = "audit.k8s.io/__internal"
"""Version of documents without apiVersion; such a document is rejected later."""
_KINDS: Final = {(version, "Policy"): Policy for version in ("audit.k8s.io/v1", _INTERNAL)}


class PolicyError(ValueError):
    """The policy is invalid; the text is upstream's."""


def load_policy(path: FilePath) -> Policy:
    """Read the policy in a file. Raises PolicyError."""
    try:
        data = read_bounded(path)
    except OSError as error:
        raise PolicyError(f"failed to read file path {quote(str(path))}: open {path}: {reason(error)}") from None
    try:
        return read_policy(data)
    except PolicyError as error:
        raise PolicyError(f"{error}: from file {path}") from None


def read_policy(data: bytes) -> Policy:
    """Parse a policy. Logs a warning about unknown or duplicate members. Raises PolicyError."""
    try:
        policy = read_document(data, _KINDS, default=(_INTERNAL, "Policy"))
    except DecodeError as error:
        try:
            policy = read_document(data, _KINDS, strict=False, default=(_INTERNAL, "Policy"))
        except DecodeError:
            raise PolicyError(f"failed decoding: {error}") from None
        logger.warning("Audit policy contains errors, falling back to lenient decoding: %s", error)
    if policy.api_version in ("", _INTERNAL):
        raise PolicyError(f"unknown group version field {_INTERNAL}, Kind=Policy in policy")
    if errors := list(validate_policy(policy)):
        raise PolicyError(aggregate(errors))
    if not policy.rules:
        raise PolicyError("loaded illegal policy with 0 rules")
    return policy


def validate_policy(policy: Policy) -> Iterator[FieldError]:
    """Yield the errors of a policy."""
    yield from _validate_stages(policy.omit_stages, Path("omitStages"))
    for index, rule in enumerate(policy.rules or ()):
        yield from _validate_rule(rule, Path("rules")[index])


def _validate_rule(rule: PolicyRule, path: Path) -> Iterator[FieldError]:
    if not rule.level:
        yield required(path / "level")
    elif rule.level not in LEVELS:
        yield not_supported(path / "level", rule.level, LEVELS)
    for index, url in enumerate(rule.non_resource_urls):
        yield from _validate_url(url, (path / "nonResourceURLs")[index])
    for each in rule.resources:
        yield from _validate_resources(each, path / "resources")
    yield from _validate_stages(rule.omit_stages, path / "omitStages")
    if rule.non_resource_urls and (rule.resources or rule.namespaces):
        why = "rules cannot apply to both regular resources and non-resource URLs"
        yield invalid(path / "nonResourceURLs", rule.non_resource_urls, why)


def _validate_url(url: str, path: Path) -> Iterator[FieldError]:
    if url == "*":
        return
    if not url.startswith("/"):
        yield invalid(path, url, "non-resource URL rules must begin with a '/' character")
    if "*" in url[:-1]:
        yield invalid(path, url, "non-resource URL wildcards '*' must be the final character of the rule")


def _validate_resources(given: GroupResources, path: Path) -> Iterator[FieldError]:
    if given.group not in ("", "*") and (why := is_dns1123_subdomain(given.group)):
        yield invalid(path / "group", given.group, ",".join(why))
    if given.resource_names and not given.resources:
        yield invalid(
            path / "resourceNames", given.resource_names, "using resourceNames requires at least one resource"
        )


def _validate_stages(stages: list[str], path: Path) -> Iterator[FieldError]:
    for index in unknown_stages(stages):
        yield invalid(path[index], stages[index], f"allowed stages are {','.join(STAGES)}")
