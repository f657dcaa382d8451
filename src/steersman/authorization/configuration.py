"""Parser and validation of an AuthorizationConfiguration (apiserver.config.k8s.io): a chain of authorizers.

Follows k8s.io/apiserver `apis/apiserver/load` and `validation`, and kubernetes `kubeapiserver/authorizer`. Slow to
import, since match conditions are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from steersman.api.apiserver.v1 import (
    AuthorizationConfiguration,
    AuthorizerConfiguration,
    WebhookConfiguration,
    WebhookConnectionInfo,
)
from steersman.authentication.aggregate import aggregate as aggregate_texts
from steersman.authorization.interface import Decision
from steersman.authorization.match_conditions import match_condition_errors
from steersman.authorization.steps import MODES, WEBHOOK, Step, Webhook
from steersman.machinery.codec.configuration import read_document
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    Verbatim,
    aggregate,
    duplicate,
    go_json,
    invalid,
    not_supported,
    required,
)
from steersman.machinery.go.os_errors import reason
from steersman.machinery.go.strings import to_lower
from steersman.machinery.validation.formats import is_dns1123_subdomain
from steersman.machinery.values.durations import format_duration, parse_duration

_KINDS: Final = {
    (f"apiserver.config.k8s.io/{version}", "AuthorizationConfiguration"): AuthorizationConfiguration
    for version in ("v1", "v1beta1", "v1alpha1")
}
_SECOND: Final = 10**9
_LONGEST: Final = 30 * _SECOND
_AUTHORIZED: Final = 300 * _SECOND
_UNAUTHORIZED: Final = 30 * _SECOND
_REVIEWS: Final = ("v1", "v1beta1")
_POLICIES: Final[Mapping[str, Decision]] = {"NoOpinion": Decision.NO_OPINION, "Deny": Decision.DENY}
_IN_CLUSTER: Final = "InClusterConfig"
_IN_FILE: Final = "KubeConfigFile"


class ConfigurationError(ValueError):
    """The configuration is invalid; the text is upstream's."""


def read_configuration(data: bytes, needed: Collection[str] = ()) -> tuple[Step, ...]:
    """Return the chain that a document describes. It must contain the types `needed`, apart from Webhook.

    Checks that the files in it exist. Raises ConfigurationError.
    """
    configuration = AuthorizationConfiguration()
    if data:
        try:
            configuration = read_document(data, _KINDS)
        except DecodeError as error:
            raise ConfigurationError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    given = configuration.authorizers or ()
    for each in given:
        if each.webhook is not None:
            _default(each.webhook)
    if errors := tuple(_errors(given)):
        raise ConfigurationError(aggregate(errors))
    texts = [
        f"expected name {to_lower(each.type)} for authorizer {each.type} instead of {each.name}"
        for each in given
        if each.type != WEBHOOK and to_lower(each.type) != each.name
    ]
    if missing := sorted({*needed} - {WEBHOOK} - {each.type for each in given}):
        texts.append(f"missing required types: [{' '.join(missing)}]")
    if texts:
        raise ConfigurationError(aggregate_texts(texts))
    return tuple(Step(each.type, each.name, _webhook(each.webhook)) for each in given)


def _default(webhook: WebhookConfiguration) -> None:
    if not parse_duration(webhook.authorized_ttl):
        webhook.authorized_ttl = format_duration(_AUTHORIZED)
    if not parse_duration(webhook.unauthorized_ttl):
        webhook.unauthorized_ttl = format_duration(_UNAUTHORIZED)


def _webhook(given: WebhookConfiguration | None) -> Webhook | None:
    """Convert a validated webhook configuration; None for None. Raises ConfigurationError for InClusterConfig."""
    if given is None:
        return None
    kept, refused = (
        0 if keep is False else parse_duration(ttl) / _SECOND
        for keep, ttl in (
            (given.cache_authorized_requests, given.authorized_ttl),
            (given.cache_unauthorized_requests, given.unauthorized_ttl),
        )
    )
    if given.connection_info.kube_config_file is None:
        raise ConfigurationError(f"not supported yet: connectionInfo of type {_IN_CLUSTER}")
    return Webhook(
        kubeconfig=given.connection_info.kube_config_file,
        version=given.subject_access_review_version,
        authorized_ttl=kept,
        unauthorized_ttl=refused,
        timeout=parse_duration(given.timeout) / _SECOND,
        on_error=_POLICIES[given.failure_policy],
        conditions=tuple(each.expression for each in given.match_conditions or ()),
    )


def _errors(authorizers: Sequence[AuthorizerConfiguration]) -> Iterator[FieldError]:
    path = Path("authorizers")
    if not authorizers:
        yield required(path, "at least one authorization mode must be defined")
    types: set[str] = set()
    names: set[str] = set()
    for index, each in enumerate(authorizers):
        here = path[index]
        if not each.type:
            yield required(here / "type")
            continue
        if each.type not in MODES:
            yield not_supported(here / "type", each.type, MODES)
            continue
        if each.type in types and each.type != WEBHOOK:
            yield duplicate(here / "type", each.type)
            continue
        types.add(each.type)
        if not each.name:
            yield required(here / "name")
        elif each.name in names:
            yield duplicate(here / "name", each.name)
        elif faults := is_dns1123_subdomain(each.name):
            yield invalid(here / "name", each.name, f"authorizer name is invalid: {', '.join(faults)}")
        names.add(each.name)
        if each.type != WEBHOOK:
            if each.webhook is not None:
                yield invalid(here / "webhook", "non-null", "may only be specified when type=Webhook")
        elif each.webhook is None:
            yield required(here / "webhook", "required when type=Webhook")
        else:
            yield from _webhook_errors(each.webhook, here)


def _webhook_errors(given: WebhookConfiguration, path: Path) -> Iterator[FieldError]:
    timeout = parse_duration(given.timeout)
    if not timeout:
        yield required(path / "timeout")
    elif not 0 < timeout <= _LONGEST:
        yield invalid(path / "timeout", given.timeout, "must be > 0s and <= 30s")
    for name, ttl in (("authorizedTTL", given.authorized_ttl), ("unauthorizedTTL", given.unauthorized_ttl)):
        if parse_duration(ttl) < 0:
            yield invalid(path / name, ttl, "must be > 0s")
    yield from _version_errors(given, path)
    if not given.failure_policy:
        yield required(path / "failurePolicy")
    elif given.failure_policy not in _POLICIES:
        yield not_supported(path / "failurePolicy", given.failure_policy, _POLICIES)
    yield from _connection_errors(given.connection_info, path / "connectionInfo")
    expressions = [each.expression for each in given.match_conditions or ()]
    yield from match_condition_errors(expressions, path / "matchConditions")


def _version_errors(given: WebhookConfiguration, path: Path) -> Iterator[FieldError]:
    version, of_conditions = given.subject_access_review_version, given.match_condition_subject_access_review_version
    if not version:
        yield required(path / "subjectAccessReviewVersion")
    elif version not in _REVIEWS:
        yield not_supported(path / "subjectAccessReviewVersion", version, _REVIEWS)
    where = path / "matchConditionSubjectAccessReviewVersion"
    if not of_conditions:
        if given.match_conditions:
            yield required(where, "required if match conditions are specified")
    elif of_conditions != "v1":
        yield not_supported(where, of_conditions, ("v1",))


def _connection_errors(given: WebhookConnectionInfo, path: Path) -> Iterator[FieldError]:
    file, where = given.kube_config_file, path / "kubeConfigFile"
    if not given.type:
        yield required(path / "type")
    elif given.type == _IN_CLUSTER:
        if file is not None:
            yield invalid(where, file, "can only be set when type=KubeConfigFile")
    elif given.type != _IN_FILE:
        value = Verbatim(f'{{"Type":{go_json(given.type)},"KubeConfigFile":{go_json(file)}}}')
        yield not_supported(path / "type", value, (_IN_CLUSTER, _IN_FILE))
    elif not file:
        yield required(where)
    elif not file.startswith("/"):
        yield invalid(where, file, "must be an absolute path")
    else:
        try:
            mode = os.stat(file).st_mode
        except OSError as error:
            yield invalid(where, file, f"error loading file: stat {file}: {reason(error)}")
        else:
            if not stat.S_ISREG(mode):
                yield invalid(where, file, "must be a regular file")
