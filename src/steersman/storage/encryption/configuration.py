"""The file of `--encryption-provider-config`, decoded, defaulted and validated with upstream's messages.

Follows k8s.io/apiserver `apis/apiserver/v1/defaults.go` and `apis/apiserver/validation/validation_encryption.go`. No
message contains a key.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Final

from steersman.api.apiserver.v1 import EncryptionConfiguration, Key, KMSConfiguration, ProviderConfiguration
from steersman.machinery.codec.configuration import MissingKindError, read_document
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.field import FieldError, Path, Verbatim, aggregate, invalid, quote, required
from steersman.machinery.go.os_errors import reason
from steersman.machinery.go.strings import to_lower
from steersman.machinery.go.urls import UrlError, parse_error_message, parse_reference
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.private_files import read_bounded
from steersman.machinery.values.durations import parse_duration

_KINDS: Final = {
    ("apiserver.config.k8s.io/v1", "EncryptionConfiguration"): EncryptionConfiguration,
    ("v1", "EncryptionConfig"): EncryptionConfiguration,
}
_AES_KEYS: Final = (16, 24, 32)
_BOX_KEYS: Final = (32,)
ANY: Final = GroupResource("*", "*")
"""The resource `*.*`, which matches every resource."""
_DEFAULT_TIMEOUT: Final = "3s"
_WITHOUT_API: Final = frozenset({"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"})


class ConfigurationError(ValueError):
    """The file cannot be used; the text is upstream's."""


def read_file(path: FilePath) -> bytes:
    """Return the content of the file. Raises ConfigurationError."""
    try:
        data = read_bounded(path)
    except OSError as error:
        why = f"open {path}: {reason(error)}" if error.errno else str(error)
        raise ConfigurationError(
            f"error while loading file: error reading encryption provider configuration file {quote(str(path))}: {why}"
        ) from None
    if not data:
        raise ConfigurationError(
            f"error while loading file: encryption provider configuration file {quote(str(path))} is empty"
        )
    return data


def parse_configuration(data: bytes, path: FilePath, *, reloads: bool) -> EncryptionConfiguration:
    """Decode, default and validate the configuration in a file. Raises ConfigurationError."""
    try:
        configuration = read_document(data, _KINDS)
    except DecodeError as error:
        raise ConfigurationError(
            f"error decoding encryption provider configuration file {quote(str(path))}: {_without_content(error)}"
        ) from None
    for resource in configuration.resources or ():
        for provider in resource.providers or ():
            if provider.kms is not None:
                _set_defaults(provider.kms)
    if errors := list(configuration_errors(configuration, reloads=reloads)):
        raise ConfigurationError(aggregate(errors))
    return configuration


def _without_content(error: DecodeError) -> str:
    """Return the text of an error without the file's content, which upstream includes in one message and which has
    keys.
    """
    text = str(error)
    return text.partition(" in '")[0] if isinstance(error, MissingKindError) and " is missing in '" in text else text


def _set_defaults(kms: KMSConfiguration) -> None:
    if kms.timeout is None:
        kms.timeout = _DEFAULT_TIMEOUT
    if not kms.api_version:
        kms.api_version = "v1"
    if kms.cachesize is None and kms.api_version == "v1":
        kms.cachesize = 1000


def parse_group_resource(text: str) -> GroupResource:
    """Parse text such as `deployments.apps`. `*.` and `*.apps` are every resource of a group."""
    resource, _, group = text.partition(".")
    return GroupResource(group, resource)


def resource_text(resource: GroupResource) -> str:
    """Return the text of a resource in a configuration file."""
    return "*." if resource == GroupResource("", "*") else str(resource)


def timeout_of(kms: KMSConfiguration) -> float:
    """Return the timeout of a call to the plugin, in seconds."""
    return parse_duration(kms.timeout or _DEFAULT_TIMEOUT) / 1e9


def configuration_errors(configuration: EncryptionConfiguration, *, reloads: bool) -> Iterator[FieldError]:
    """Yield the errors of a configuration. `reloads` tells whether the file is reloaded after changes."""
    root = Path("resources")
    if not configuration.resources:
        yield required(root, f"at least one {root} is required")
        return
    names: set[str] = set()
    for number, each in enumerate(configuration.resources):
        resources, providers = root[number] / "resources", root[number] / "providers"
        if not each.resources:
            yield required(resources, f"at least one {resources} is required")
        yield from _overlap_errors(each.resources or (), resources)
        yield from _name_errors(each.resources or (), resources)
        if not each.providers:
            yield required(providers, f"at least one {providers} is required")
        for index, provider in enumerate(each.providers or ()):
            path = providers[index]
            yield from _single_provider_errors(provider, path)
            if provider.kms is not None:
                yield from _kms_errors(provider.kms, path / "kms", names, reloads=reloads)
                names.add(provider.kms.name)
            elif provider.aesgcm is not None:
                yield from _keys_errors(provider.aesgcm.keys or (), path / "aesgcm" / "keys", _AES_KEYS)
            elif provider.aescbc is not None:
                yield from _keys_errors(provider.aescbc.keys or (), path / "aescbc" / "keys", _AES_KEYS)
            elif provider.secretbox is not None:
                yield from _keys_errors(provider.secretbox.keys or (), path / "secretbox" / "keys", _BOX_KEYS)


def _overlap_errors(resources: Sequence[str], path: Path) -> Iterator[FieldError]:
    parsed = [parse_group_resource(each) for each in resources]
    if len(parsed) < 2:
        return
    distinct = set(parsed)
    if len(distinct) < len(parsed):
        yield invalid(path, list(resources), "the same resource cannot be specified multiple times")
    if _overlaps(parsed):
        yield invalid(
            path,
            list(resources),
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they "
            "will be masked",
        )


def _overlaps(parsed: Sequence[GroupResource]) -> bool:
    """Return True if one of several resources is a wildcard that covers another."""
    if ANY in parsed:
        return True
    sizes = Counter(each.group for each in parsed)
    return any(each.resource == "*" and sizes[each.group] > 1 for each in parsed)


def _name_errors(resources: Sequence[str], path: Path) -> Iterator[FieldError]:
    for number, name in enumerate(resources):
        wrong = _name_error(name)
        if wrong:
            yield invalid(path[number], name, wrong)


def _name_error(name: str) -> str:
    resource = parse_group_resource(name)
    if to_lower(name) != name:
        return "resource name should not contain capital letters"
    if name == "*":
        return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    if name in _WITHOUT_API:
        return "resources which do not have REST API/s cannot be encrypted"
    if resource.group == "events.k8s.io":
        return (
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the "
            "config file"
        )
    if resource.group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if resource.group == "*" and resource.resource != "*":
        return "encrypting the same resource across groups is not supported"
    return ""


def _single_provider_errors(provider: ProviderConfiguration, path: Path) -> Iterator[FieldError]:
    named = (provider.kms, provider.aesgcm, provider.aescbc, provider.secretbox, provider.identity)
    count = sum(each is not None for each in named)
    if not count:
        yield invalid(
            path,
            _shown_provider(provider),
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
        )
    elif count > 1:
        yield invalid(
            path,
            _shown_provider(provider),
            "more than one provider specified in a single element, should split into different list elements",
        )


def _shown_provider(provider: ProviderConfiguration) -> Verbatim:
    """Return a provider in upstream's format, which does not show keys."""
    parts = {
        "AESGCM": provider.aesgcm,
        "AESCBC": provider.aescbc,
        "Secretbox": provider.secretbox,
        "Identity": provider.identity,
        "KMS": provider.kms,
    }
    return Verbatim(
        "{" + ",".join(f'"{name}":{"null" if part is None else "{...}"}' for name, part in parts.items()) + "}"
    )


def _keys_errors(keys: Sequence[Key], path: Path, sizes: Sequence[int]) -> Iterator[FieldError]:
    if not keys:
        yield required(path, "at least one keys is required")
    for number, key in enumerate(keys):
        yield from _key_errors(key, path[number], sizes)


def _key_errors(key: Key, path: Path, sizes: Sequence[int]) -> Iterator[FieldError]:
    if not key.name:
        yield required(path / "name", "name is a mandatory field for a key")
    if not key.secret:
        yield required(path / "secret", "secret is a mandatory field for a key")
        return
    try:
        secret = secret_of(key)
    except ValueError:
        yield invalid(path / "secret", "REDACTED", "secrets must be base64 encoded")
        return
    if len(secret) not in sizes:
        expected = " ".join(map(str, sizes))
        yield invalid(
            path / "secret",
            "REDACTED",
            f"secret is not of the expected length, got {len(secret)}, expected one of [{expected}]",
        )


def secret_of(key: Key) -> bytes:
    """Return the bytes of a key. Raises ValueError."""
    text = key.secret.replace("\r", "").replace("\n", "")  # Go ignores line breaks
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("illegal base64") from None


def _kms_errors(kms: KMSConfiguration, path: Path, names: set[str], *, reloads: bool) -> Iterator[FieldError]:
    is_v1 = kms.api_version == "v1"
    if not kms.name:
        yield required(path / "name", "name is a mandatory field for a provider")
    if not is_v1 and ":" in kms.name:
        yield invalid(path / "name", kms.name, f"invalid KMS provider name {kms.name}, must not contain ':'")
    if (reloads or not is_v1) and kms.name in names:
        yield invalid(path / "name", kms.name, f"duplicate KMS provider name {kms.name}, names must be unique")
    if timeout_of(kms) <= 0:
        yield invalid(path / "timeout", kms.timeout, "timeout should be a positive value")
    yield from _endpoint_errors(kms.endpoint, path / "endpoint")
    if not is_v1 and kms.cachesize is not None:
        yield invalid(path / "cachesize", kms.cachesize, "cachesize is not supported in v2")
    if is_v1 and kms.cachesize == 0:
        yield invalid(path / "cachesize", 0, "cachesize should be a positive value, or negative to disable")
    if kms.api_version not in ("v1", "v2"):
        yield invalid(
            path / "apiVersion",
            kms.api_version,
            "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported",
        )


def _endpoint_errors(endpoint: str, path: Path) -> Iterator[FieldError]:
    if not endpoint:
        yield invalid(path, "", "endpoint is a mandatory field for a kms")
        return
    try:
        scheme = parse_reference(endpoint).scheme
    except UrlError as error:
        yield invalid(
            path, endpoint, f"invalid endpoint for kms provider, error: {parse_error_message(endpoint, error)}"
        )
        return
    if scheme != "unix":
        yield invalid(path, endpoint, f"unsupported scheme {quote(scheme)} for KMS provider, only unix is supported")


def socket_of(endpoint: str) -> str:
    """Return the path of the socket in a valid endpoint. A name in the abstract namespace begins with `@`."""
    path = parse_reference(endpoint).path
    return path[1:] if path.startswith("/@") else path
