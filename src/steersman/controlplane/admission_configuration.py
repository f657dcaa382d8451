"""`--admission-control-config-file`: the configuration of admission plugins (AdmissionConfiguration).

The file names plugins, and gives each a document or the path of one. As upstream, entries of disabled and unknown
plugins are ignored. The file of an enabled plugin must exist, though few plugins read one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from steersman.admission_plugins import event_rate_limit, image_policy_webhook, pod_toleration_restriction
from steersman.admission_plugins.event_rate_limit import Limit
from steersman.admission_plugins.pod_security import pod_security
from steersman.admission_plugins.pod_security.levels import LevelVersion, Policy, level_of, minor_of
from steersman.admission_plugins.quota import resource_quota
from steersman.admission_plugins.quota.resource_quota import LimitedResource
from steersman.api.apiserver import v1 as apiserver
from steersman.api.scalars import Wire
from steersman.controlplane.options import OptionsError
from steersman.machinery.codec.configuration import (
    Document,
    Kinds,
    MissingKindError,
    Nanoseconds,
    detect_media,
    read_document,
    type_in_version,
)
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.codec.strict import DecodeError, decode_as, decode_untyped, yaml_as_json
from steersman.machinery.errors import field as fields
from steersman.machinery.errors.field import FieldError, aggregate
from steersman.machinery.go.strings import to_lower
from steersman.machinery.private_files import read_bounded
from steersman.machinery.validation.formats import is_dns1123_label, is_dns1123_subdomain
from steersman.machinery.values.durations import format_duration
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.scheduling import validate_tolerations
from steersman.webhooks.kubeconfig import (
    ANONYMOUS,
    NO_CONFIGURATION,
    KubeconfigError,
    Login,
    load_kubeconfig,
    load_logins,
)
from steersman.work.patterns import late_pattern

_SECOND: Final = 10**9
_MILLISECOND: Final = 10**6
_MINUTE: Final = 60 * _SECOND

T = TypeVar("T", bound=Wire)


class _PodSecurityDefaults(Wire):
    enforce: str = ""
    enforce_version: str = msgspec.field(name="enforce-version", default="")
    audit: str = ""
    audit_version: str = msgspec.field(name="audit-version", default="")
    warn: str = ""
    warn_version: str = msgspec.field(name="warn-version", default="")


class _PodSecurityExemptions(Wire):
    usernames: list[str] = []
    namespaces: list[str] = []
    runtime_classes: list[str] = []


class _PodSecurityConfiguration(Document):
    defaults: _PodSecurityDefaults = msgspec.field(default_factory=_PodSecurityDefaults)
    exemptions: _PodSecurityExemptions = msgspec.field(default_factory=_PodSecurityExemptions)


class _WebhookAdmissionV1Alpha1(Document):
    kube_config_file: str = ""


class _WebhookAdmission(_WebhookAdmissionV1Alpha1):
    static_manifests_dir: str = ""


class _MutatingAdmissionPolicyConfiguration(Document):
    static_manifests_dir: str = ""


class _ValidatingAdmissionPolicyConfiguration(_MutatingAdmissionPolicyConfiguration):
    pass


class _imagePolicyWebhookConfig(Wire):
    kube_config_file: str = ""
    allow_ttl: Nanoseconds = msgspec.field(name="allowTTL", default=0)
    deny_ttl: Nanoseconds = msgspec.field(name="denyTTL", default=0)
    retry_backoff: Nanoseconds = 0
    default_allow: bool = False


class _AdmissionConfig(Wire):
    image_policy: _imagePolicyWebhookConfig = msgspec.field(default_factory=_imagePolicyWebhookConfig)


_APISERVER: Final = "apiserver.config.k8s.io/v1"
_FILE: Final = {
    (_APISERVER, "AdmissionConfiguration"): apiserver.AdmissionConfiguration,
    ("apiserver.k8s.io/v1alpha1", "AdmissionConfiguration"): apiserver.AdmissionConfiguration,
}
_POD_SECURITY: Final = {
    (f"pod-security.admission.config.k8s.io/{version}", "PodSecurityConfiguration"): _PodSecurityConfiguration
    for version in ("v1", "v1beta1", "v1alpha1")
}
_RESOURCE_QUOTA: Final = {
    (_APISERVER, "ResourceQuotaConfiguration"): resource_quota.Configuration,
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"): resource_quota.Configuration,
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"): resource_quota.Configuration,
}
_POD_TOLERATIONS: Final = {
    ("podtolerationrestriction.admission.k8s.io/v1alpha1", "Configuration"): pod_toleration_restriction.Configuration
}
_EVENT_RATE_LIMIT: Final = {
    ("eventratelimit.admission.k8s.io/v1alpha1", "Configuration"): event_rate_limit.Configuration
}
_WEBHOOKS: Final[Kinds[_WebhookAdmissionV1Alpha1]] = {
    (_APISERVER, "WebhookAdmissionConfiguration"): _WebhookAdmission,
    ("apiserver.config.k8s.io/v1alpha1", "WebhookAdmission"): _WebhookAdmissionV1Alpha1,
}
_POLICIES: Final = {
    (_APISERVER, each.__name__.removeprefix("_")): each
    for each in (_MutatingAdmissionPolicyConfiguration, _ValidatingAdmissionPolicyConfiguration)
}
POLICY_PLUGINS: Final = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")

_NODE_SELECTORS: Final = "podNodeSelectorPluginConfig"
_LEGACY: Final = {_NODE_SELECTORS: "PodNodeSelector", "imagePolicy": "ImagePolicyWebhook"}
"""Files that hold the configuration of one plugin directly, by their first key."""
_BETWEEN_DOCUMENTS: Final = late_pattern(rb"^---.*$", re.MULTILINE)


class AdmissionConfiguration(Struct, frozen=True):
    """The document, or the path of it, by plugin. Each method returns the configuration of one plugin.

    All methods raise OptionsError for a document that cannot be read or is invalid.
    """

    plugins: Mapping[str, bytes | Path] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str) -> AdmissionConfiguration:
        """Read the file of the flag; without one, no plugin is configured. Raises OptionsError."""
        if not path:
            return cls()
        try:
            return cls(_read_file(Path(path)))
        except DecodeError as error:
            raise OptionsError(f"failed to apply admission: failed to read plugin config: {error}") from None

    def document(self, plugin: str) -> bytes | None:
        """Return the document of a plugin, or None if there is none. Raises OptionsError for an unreadable file."""
        source = self.plugins.get(plugin)
        if isinstance(source, Path):
            try:
                return read_bounded(source)
            except OSError as error:
                raise OptionsError(
                    f"Couldn't open admission plugin configuration {source}: {error.strerror or error}"
                ) from None
        return source

    def pod_security(self) -> pod_security.Configuration:
        """Return the PodSecurityConfiguration; an empty document counts as none."""
        document = self.document("PodSecurity")
        if not document:
            return pod_security.UNCONFIGURED
        decoded = _decode("PodSecurity", document, _POD_SECURITY)
        exemptions = decoded.exemptions
        failed = 'failed to apply admission: failed to initialize admission plugin "PodSecurity": PodSecurity'
        wrong: list[str] = []
        enforce, audit, warn = (_level_version(decoded.defaults, mode, wrong) for mode in ("enforce", "audit", "warn"))
        if wrong:
            raise OptionsError(f"{failed} configuration error: {wrong[0] if len(wrong) == 1 else _listed(wrong)}")
        if errors := tuple(_check_exemptions(exemptions)):
            raise OptionsError(f"{failed} invalid: {aggregate(errors)}")
        return pod_security.Configuration(
            Policy(enforce, audit, warn),
            frozenset(exemptions.usernames),
            frozenset(exemptions.namespaces),
            frozenset(exemptions.runtime_classes),
        )

    def resource_quota(self) -> tuple[LimitedResource, ...]:
        """Return the limits of the ResourceQuotaConfiguration."""
        document = self.document("ResourceQuota")
        if document is None:
            return ()
        limited = _decode("ResourceQuota", document, _RESOURCE_QUOTA).limited_resources
        path = fields.Path("limitedResources")
        errors = [fields.required(path[index] / "resource") for index, each in enumerate(limited) if not each.resource]
        if errors:
            raise _bad_init("ResourceQuota", aggregate(errors))
        return tuple(limited)

    def pod_node_selector(self) -> dict[str, str]:
        """Return the podNodeSelectorPluginConfig. It has no kind; as upstream, errors of syntax are ignored."""
        selectors: dict[str, str] = {}
        for document in _BETWEEN_DOCUMENTS.split(self.document("PodNodeSelector") or b""):
            selectors |= _node_selectors(document)
        return selectors

    def image_policy(self) -> image_policy_webhook.Configuration:
        """Return the imagePolicy, which ImagePolicyWebhook requires; it has no kind."""
        name = "ImagePolicyWebhook"
        document = self.document(name)
        if document is None:
            raise _bad_init(name, "no config specified")
        try:
            media = detect_media(document)
            plain = decode_as(type_in_version(_AdmissionConfig, "imagepolicy"), document, media, want_strict=False).obj
        except DecodeError as error:
            where = "error unmarshaling JSON: while decoding JSON: " if media == "yaml" else ""
            raise _bad_init(name, f"{where}{error}") from None
        given = from_plain(_AdmissionConfig, plain or {}).image_policy
        try:
            backoff = _duration(given.retry_backoff, _MILLISECOND, (1, 5 * _MINUTE), _SECOND // 2)
            allow = _duration(given.allow_ttl, _SECOND, (_SECOND, 30 * _MINUTE), 5 * _MINUTE)
            deny = _duration(given.deny_ttl, _SECOND, (_SECOND, 30 * _MINUTE), 30 * _SECOND)
            if not given.kube_config_file:
                raise KubeconfigError(NO_CONFIGURATION)
            endpoint = load_kubeconfig(Path(given.kube_config_file))
        except ValueError as error:
            raise _bad_init(name, error) from None
        settings = image_policy_webhook.Settings(allow, deny, given.default_allow)
        return image_policy_webhook.Configuration(endpoint, backoff, settings)

    def mutating_webhooks(self) -> Callable[[str], Login]:
        """Return a function from a webhook's host to this server's credentials, for MutatingAdmissionWebhook."""
        return self._logins("MutatingAdmissionWebhook")

    def validating_webhooks(self) -> Callable[[str], Login]:
        """Return a function from a webhook's host to this server's credentials, for ValidatingAdmissionWebhook."""
        return self._logins("ValidatingAdmissionWebhook")

    def _logins(self, name: str) -> Callable[[str], Login]:
        document = self.document(name)
        if not document:
            return lambda host: ANONYMOUS
        decoded = _decode(name, document, _WEBHOOKS)
        path = decoded.kube_config_file
        if path and not path.startswith("/"):
            raise _bad_init(name, fields.invalid(fields.Path("kubeConfigFile"), path, "must be an absolute file path"))
        if isinstance(decoded, _WebhookAdmission):
            _check_manifests(name, decoded.static_manifests_dir)
        if not path:
            return lambda host: ANONYMOUS
        try:
            return load_logins(Path(path))
        except KubeconfigError as error:
            raise _bad_init(name, error) from None

    def check_policies(self, name: str) -> None:
        """Check the configuration of a policy plugin (POLICY_PLUGINS), which has no supported settings."""
        document = self.document(name)
        if document is None:
            return
        decoded = _decode(name, document, _POLICIES)
        if decoded.kind != f"{name}Configuration":
            raise _bad_init(name, f"unexpected type: *policyconfig.{decoded.kind}")
        _check_manifests(name, decoded.static_manifests_dir)

    def pod_tolerations(self) -> pod_toleration_restriction.Configuration:
        """Return the configuration of PodTolerationRestriction."""
        name = "PodTolerationRestriction"
        document = self.document(name)
        if document is None:
            return pod_toleration_restriction.UNCONFIGURED
        decoded = _decode(name, document, _POD_TOLERATIONS, strict=False)
        path, options = fields.Path("podtolerationrestriction"), PodValidationOptions()
        errors = [
            *validate_tolerations(decoded.default, path / "default", options),
            *validate_tolerations(decoded.whitelist, path / "whitelist", options),
        ]
        if errors:
            raise _bad_init(name, f"invalid config: [{' '.join(map(str, errors))}]")
        return decoded

    def event_rate_limits(self) -> tuple[Limit, ...]:
        """Return the limits of EventRateLimit, which must be configured."""
        name = "EventRateLimit"
        document = self.document(name)
        limits = None
        if document is not None:
            limits = _decode(name, document, _EVENT_RATE_LIMIT, strict=False).limits
        if errors := tuple(_check_limits(limits)):
            raise _bad_init(name, aggregate(errors))
        return tuple(limits or ())


def _read_file(path: Path) -> dict[str, bytes | Path]:
    """Return the plugins of a file. Raises DecodeError."""
    try:
        data = read_bounded(path)
    except OSError as error:
        raise DecodeError(
            f"unable to read admission control configuration from {fields.quote(str(path))} [{error.strerror or error}]"
        ) from None
    try:
        plugins = read_document(data, _FILE).plugins or ()
    except MissingKindError:
        legacy = _legacy(data)
        if not legacy:
            raise
        return dict.fromkeys(legacy, path)
    sources: dict[str, bytes | Path | None] = {}
    for each in plugins:
        if each.name in sources:
            continue  # the first entry counts
        if each.configuration is not None:
            sources[each.name] = bytes(each.configuration)
        else:
            sources[each.name] = path.absolute().parent / each.path if each.path else None
    return {name: source for name, source in sources.items() if source is not None}


def _legacy(data: bytes) -> list[str]:
    """Return the plugins that a file without a kind configures. Raises DecodeError."""
    plain = decode_untyped(data if detect_media(data) == "json" else yaml_as_json(data))
    return [plugin for key, plugin in _LEGACY.items() if key in plain] if isinstance(plain, dict) else []


def _bad_init(plugin: str, why: object) -> OptionsError:
    return OptionsError(f"failed to apply admission: couldn't init admission plugin {fields.quote(plugin)}: {why}")


def _check_manifests(plugin: str, folder: str) -> None:
    """Raise OptionsError for a folder of objects, which upstream reads only with a feature gate that is off by
    default.
    """
    path = fields.Path("staticManifestsDir")
    if folder:
        gate = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"
        raise _bad_init(plugin, fields.forbidden(path, gate))


def _decode(plugin: str, document: bytes, kinds: Kinds[T], *, strict: bool = True) -> T:
    try:
        return read_document(document, kinds, strict=strict)
    except DecodeError as error:
        raise _bad_init(plugin, error) from None


def _listed(texts: list[str]) -> str:
    return f"[{', '.join(texts)}]"


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


def _level_version(defaults: _PodSecurityDefaults, mode: str, wrong: list[str]) -> LevelVersion:
    """Return the level and version of a mode, by default privileged and latest. Appends error texts to `wrong`."""
    unset = LevelVersion("privileged", minor_of("latest"))
    level, minor = unset
    try:
        level = level_of(getattr(defaults, mode) or unset.level)
    except ValueError as error:
        wrong.append(f"{mode}: {error}")
    try:
        minor = minor_of(getattr(defaults, f"{mode}_version") or "latest")
    except ValueError as error:
        wrong.append(f"{mode}-version: {error}")
    return LevelVersion(level, minor)


def _check_exemptions(exemptions: _PodSecurityExemptions) -> Iterator[FieldError]:
    def not_empty(name: str) -> list[str]:
        return [] if name else ["username must not be empty"]

    for key, names, check in (
        ("namespaces", exemptions.namespaces, is_dns1123_label),
        ("runtimeClasses", exemptions.runtime_classes, is_dns1123_subdomain),
        ("usernames", exemptions.usernames, not_empty),
    ):
        seen: set[str] = set()
        for index, name in enumerate(names):
            path = fields.Path("exemptions", key)[index]
            if faults := check(name):
                yield fields.invalid(path, name, ", ".join(faults))
            elif name in seen:
                yield fields.duplicate(path, name)
            seen.add(name)


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
    """Return the selectors in a document. Member names match in any case, as in Go's encoding/json."""
    as_text = detect_media(document) == "yaml"
    try:
        plain = decode_untyped(yaml_as_json(document) if as_text else document)
    except DecodeError:
        return {}
    node_selectors: dict[str, str] = {}
    for key, selectors in plain.items() if isinstance(plain, dict) else ():
        if to_lower(key) == to_lower(_NODE_SELECTORS) and isinstance(selectors, dict):
            node_selectors |= {name: _selector(value, as_text=as_text) for name, value in selectors.items()}
    return node_selectors


def _selector(value: Any, *, as_text: bool) -> str:
    """Return a selector. Numbers and booleans of YAML are read as text; in JSON they are ignored."""
    if isinstance(value, str):
        return value
    if not as_text or value is None or isinstance(value, dict | list):
        return ""
    return to_lower(str(value))
