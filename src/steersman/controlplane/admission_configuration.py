"""`--admission-control-config-file`: the configuration of admission plugins (AdmissionConfiguration).

The file names plugins, and gives each a document or the path of one. As upstream, entries of disabled and unknown
plugins are ignored. The file of an enabled plugin must exist, though few plugins read one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct, field

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
    detect_media,
    limits_as_decode_errors,
    read_document,
)
from steersman.machinery.codec.strict import DecodeError, decode_untyped, yaml_as_json
from steersman.machinery.errors import field as fields
from steersman.machinery.errors.field import FieldError, aggregate
from steersman.machinery.private_files import read_bounded
from steersman.machinery.validation.formats import is_dns1123_label, is_dns1123_subdomain
from steersman.webhooks.kubeconfig import (
    ANONYMOUS,
    KubeconfigError,
    Login,
    load_logins,
)

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
_WEBHOOKS: Final[Kinds[_WebhookAdmissionV1Alpha1]] = {
    (_APISERVER, "WebhookAdmissionConfiguration"): _WebhookAdmission,
    ("apiserver.config.k8s.io/v1alpha1", "WebhookAdmission"): _WebhookAdmissionV1Alpha1,
}
_POLICIES: Final = {
    (_APISERVER, each.__name__.removeprefix("_")): each
    for each in (_MutatingAdmissionPolicyConfiguration, _ValidatingAdmissionPolicyConfiguration)
}
POLICY_PLUGINS: Final = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")

NODE_SELECTORS: Final = "podNodeSelectorPluginConfig"
"""Member of the document of PodNodeSelector that holds the selectors."""
_LEGACY: Final = {NODE_SELECTORS: "PodNodeSelector", "imagePolicy": "ImagePolicyWebhook"}
"""Files that hold the configuration of one plugin directly, by their first key."""


class AdmissionConfiguration(Struct, frozen=True):
    """The document, or the path of it, by plugin. Each method returns the configuration of one plugin.

    `controlplane.optional_plugins` has the configurations of plugins that are off by default.

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
        decoded = decode_configuration("PodSecurity", document, _POD_SECURITY)
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
        limited = decode_configuration("ResourceQuota", document, _RESOURCE_QUOTA).limited_resources
        path = fields.Path("limitedResources")
        errors = [fields.required(path[index] / "resource") for index, each in enumerate(limited) if not each.resource]
        if errors:
            raise bad_init("ResourceQuota", aggregate(errors))
        return tuple(limited)

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
        decoded = decode_configuration(name, document, _WEBHOOKS)
        path = decoded.kube_config_file
        if path and not path.startswith("/"):
            raise bad_init(name, fields.invalid(fields.Path("kubeConfigFile"), path, "must be an absolute file path"))
        if isinstance(decoded, _WebhookAdmission):
            _check_manifests(name, decoded.static_manifests_dir)
        if not path:
            return lambda host: ANONYMOUS
        try:
            return load_logins(Path(path))
        except KubeconfigError as error:
            raise bad_init(name, error) from None

    def check_policies(self, name: str) -> None:
        """Check the configuration of a policy plugin (POLICY_PLUGINS), which has no supported settings."""
        document = self.document(name)
        if document is None:
            return
        decoded = decode_configuration(name, document, _POLICIES)
        if decoded.kind != f"{name}Configuration":
            raise bad_init(name, f"unexpected type: *policyconfig.{decoded.kind}")
        _check_manifests(name, decoded.static_manifests_dir)


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
    with limits_as_decode_errors():
        plain = decode_untyped(data if detect_media(data) == "json" else yaml_as_json(data))
    return [plugin for key, plugin in _LEGACY.items() if key in plain] if isinstance(plain, dict) else []


def bad_init(plugin: str, why: object) -> OptionsError:
    """Return the error of a plugin that cannot be created, in upstream's words."""
    return OptionsError(f"failed to apply admission: couldn't init admission plugin {fields.quote(plugin)}: {why}")


def _check_manifests(plugin: str, folder: str) -> None:
    """Raise OptionsError for a folder of objects, which upstream reads only with a feature gate that is off by
    default.
    """
    path = fields.Path("staticManifestsDir")
    if folder:
        gate = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"
        raise bad_init(plugin, fields.forbidden(path, gate))


def decode_configuration(plugin: str, document: bytes, kinds: Kinds[T], *, strict: bool = True) -> T:
    """Return the configuration document of a plugin as one of `kinds`. Raises OptionsError."""
    try:
        return read_document(document, kinds, strict=strict)
    except DecodeError as error:
        raise bad_init(plugin, error) from None


def _listed(texts: list[str]) -> str:
    return f"[{', '.join(texts)}]"


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
