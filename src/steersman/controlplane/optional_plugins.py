"""Configurations of the admission plugins that are off by default, read if a flag enables the plugin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from steersman.admission_plugins import event_rate_limit, image_policy_webhook, pod_toleration_restriction
from steersman.admission_plugins.event_rate_limit import Limit
from steersman.api.scalars import Wire
from steersman.controlplane.admission_configuration import (
    NODE_SELECTORS,
    AdmissionConfiguration,
    bad_init,
    decode_configuration,
)
from steersman.machinery.codec.configuration import Nanoseconds, detect_media, limits_as_decode_errors, type_in_version
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.codec.strict import DecodeError, decode_as, decode_untyped, yaml_as_json
from steersman.machinery.errors import field as fields
from steersman.machinery.errors.field import FieldError, aggregate
from steersman.machinery.errors.status import StatusError
from steersman.machinery.go.strings import to_lower
from steersman.machinery.values.durations import format_duration
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.scheduling import validate_tolerations
from steersman.webhooks.kubeconfig import NO_CONFIGURATION, KubeconfigError, load_kubeconfig
from steersman.work.patterns import late_pattern

_SECOND: Final = 10**9
_MILLISECOND: Final = 10**6
_MINUTE: Final = 60 * _SECOND

_POD_TOLERATIONS: Final = {
    ("podtolerationrestriction.admission.k8s.io/v1alpha1", "Configuration"): pod_toleration_restriction.Configuration
}
_EVENT_RATE_LIMIT: Final = {
    ("eventratelimit.admission.k8s.io/v1alpha1", "Configuration"): event_rate_limit.Configuration
}
_BETWEEN_DOCUMENTS: Final = late_pattern(rb"^---.*$", re.MULTILINE)


class _imagePolicyWebhookConfig(Wire):
    kube_config_file: str = ""
    allow_ttl: Nanoseconds = msgspec.field(name="allowTTL", default=0)
    deny_ttl: Nanoseconds = msgspec.field(name="denyTTL", default=0)
    retry_backoff: Nanoseconds = 0
    default_allow: bool = False


class _AdmissionConfig(Wire):
    image_policy: _imagePolicyWebhookConfig = msgspec.field(default_factory=_imagePolicyWebhookConfig)


def pod_node_selector(configuration: AdmissionConfiguration) -> dict[str, str]:
    """Return the podNodeSelectorPluginConfig. It has no kind; as upstream, errors of syntax are ignored. Raises OptionsError."""
    selectors: dict[str, str] = {}
    for document in _BETWEEN_DOCUMENTS.split(configuration.document("PodNodeSelector") or b""):
        selectors |= _node_selectors(document)
    return selectors


def image_policy(configuration: AdmissionConfiguration) -> image_policy_webhook.Configuration:
    """Return the imagePolicy, which ImagePolicyWebhook requires; it has no kind."""
    name = "ImagePolicyWebhook"
    document = configuration.document(name)
    if document is None:
        raise bad_init(name, "no config specified")
    try:
        media = detect_media(document)
        with limits_as_decode_errors():
            plain = decode_as(type_in_version(_AdmissionConfig, "imagepolicy"), document, media, want_strict=False).obj
    except DecodeError as error:
        where = "error unmarshaling JSON: while decoding JSON: " if media == "yaml" else ""
        raise bad_init(name, f"{where}{error}") from None
    given = from_plain(_AdmissionConfig, plain or {}).image_policy
    try:
        backoff = _duration(given.retry_backoff, _MILLISECOND, (1, 5 * _MINUTE), _SECOND // 2)
        allow = _duration(given.allow_ttl, _SECOND, (_SECOND, 30 * _MINUTE), 5 * _MINUTE)
        deny = _duration(given.deny_ttl, _SECOND, (_SECOND, 30 * _MINUTE), 30 * _SECOND)
        if not given.kube_config_file:
            raise KubeconfigError(NO_CONFIGURATION)
        endpoint = load_kubeconfig(Path(given.kube_config_file))
    except ValueError as error:
        raise bad_init(name, error) from None
    settings = image_policy_webhook.Settings(allow, deny, given.default_allow)
    return image_policy_webhook.Configuration(endpoint, backoff, settings)


def pod_tolerations(configuration: AdmissionConfiguration) -> pod_toleration_restriction.Configuration:
    """Return the configuration of PodTolerationRestriction."""
    name = "PodTolerationRestriction"
    document = configuration.document(name)
    if document is None:
        return pod_toleration_restriction.UNCONFIGURED
    decoded = decode_configuration(name, document, _POD_TOLERATIONS, strict=False)
    path, options = fields.Path("podtolerationrestriction"), PodValidationOptions()
    errors = [
        *validate_tolerations(decoded.default, path / "default", options),
        *validate_tolerations(decoded.whitelist, path / "whitelist", options),
    ]
    if errors:
        raise bad_init(name, f"invalid config: [{' '.join(map(str, errors))}]")
    return decoded


def event_rate_limits(configuration: AdmissionConfiguration) -> tuple[Limit, ...]:
    """Return the limits of EventRateLimit, which must be configured."""
    name = "EventRateLimit"
    document = configuration.document(name)
    limits = None
    if document is not None:
        limits = decode_configuration(name, document, _EVENT_RATE_LIMIT, strict=False).limits
    if errors := tuple(_check_limits(limits)):
        raise bad_init(name, aggregate(errors))
    return tuple(limits or ())


def _duration(value: int, scale: int, bounds: tuple[int, int], default: int) -> float:
    """Convert a number of `scale` nanoseconds to seconds; 0 means the default, -1 no duration. Raises ValueError."""
    if value == -1:
        return 0.0
    nanoseconds = value * scale or default
    low, high = bounds
    if not low <= nanoseconds <= high:
        low_text, high_text, text = (format_duration(each) for each in (low, high, nanoseconds))
        raise ValueError(f"valid value is between {low_text} and {high_text}, got {text}")
    return nanoseconds / _SECOND


def _check_limits(limits: list[Limit] | None) -> Iterator[FieldError]:
    path = fields.Path("limits")
    if not limits:
        yield fields.invalid(path, limits, "must not be empty")
    for index, each in enumerate(limits or ()):
        here = path[index]
        if each.type not in event_rate_limit.KEYS:
            yield fields.not_supported(here / "type", each.type, event_rate_limit.KEYS)
        for key, value in (("burst", each.burst), ("qps", each.qps)):
            if value <= 0:
                yield fields.invalid(here / key, value, "must be positive")
        if each.type != event_rate_limit.SERVER and each.cache_size < 0:
            yield fields.invalid(here / "cacheSize", each.cache_size, "must not be negative")


def _node_selectors(document: bytes) -> dict[str, str]:
    """Return the selectors in a document. Member names match in any case, as in Go's encoding/json.

    Raises OptionsError for too many values.
    """
    as_text = detect_media(document) == "yaml"
    try:
        plain = decode_untyped(yaml_as_json(document) if as_text else document)
    except DecodeError:
        return {}
    except StatusError as error:  # too many values: without an error the selectors would not be in force
        raise bad_init("PodNodeSelector", error.message) from None
    node_selectors: dict[str, str] = {}
    for key, selectors in plain.items() if isinstance(plain, dict) else ():
        if to_lower(key) == to_lower(NODE_SELECTORS) and isinstance(selectors, dict):
            node_selectors |= {name: _selector(value, as_text=as_text) for name, value in selectors.items()}
    return node_selectors


def _selector(value: Any, *, as_text: bool) -> str:
    """Return a selector. Numbers and booleans of YAML are read as text; in JSON they are ignored."""
    if isinstance(value, str):
        return value
    if not as_text or value is None or isinstance(value, dict | list):
        return ""
    return to_lower(str(value))
