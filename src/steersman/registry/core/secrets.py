"""Secrets: small pieces of confidential data; some secret types require certain keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import Secret
from steersman.kinds.built_in import built_in
from steersman.machinery.codec.json_tree import JSONSyntaxError, kind_of, parse_tree
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, required, too_long
from steersman.machinery.validation.formats import are_usual_config_map_keys, is_config_map_key
from steersman.machinery.validation.leaves import validate_with
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.core.configmaps import IMMUTABLE, MAX_DATA_BYTES
from steersman.registry.core.tls_key_pair import key_pair_error
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
"""The annotation that names the service account of a token secret."""
TLS: Final = "kubernetes.io/tls"
"""The type of secrets that hold a certificate and its key."""

_DATA: Final = Path("data")
_JSON_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def _validate_type(secret: Secret) -> Iterator[FieldError]:
    """Yield errors of keys that the type of a secret requires."""
    data = secret.data
    match secret.type:
        case "kubernetes.io/service-account-token":
            if not secret.metadata.annotations.get(SERVICE_ACCOUNT_NAME):
                yield required(Path("metadata", "annotations")[SERVICE_ACCOUNT_NAME])
        case "kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson":
            yield from _validate_json_object(data, _JSON_KEYS[secret.type])
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                yield required(_DATA["username"])
                yield required(_DATA["password"])
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                yield required(_DATA["ssh-privatekey"])
        case "kubernetes.io/tls":
            for key in ("tls.crt", "tls.key"):
                if key not in data:
                    yield required(_DATA[key])


def _validate_json_object(data: dict[str, bytes], key: str) -> Iterator[FieldError]:
    if key not in data:
        yield required(_DATA[key])
    elif fault := _object_fault(data[key]):
        yield invalid(_DATA[key], "<secret contents redacted>", fault)


def _object_fault(text: bytes) -> str:
    """Return Go's message if `text` is no JSON object, "" if it is."""
    try:
        tree = parse_tree(text)
    except JSONSyntaxError as error:
        return str(error)
    if kind_of(tree) in ("object", "null"):
        return ""
    return f"json: cannot unmarshal {kind_of(tree)} into Go value of type map[string]interface {{}}"


class SecretStrategy(Strategy[Secret]):
    def prepare_for_create(self, ctx: Context, obj: Secret) -> None:
        _merge_string_data(obj)

    def validate(self, ctx: Context, obj: Secret) -> Iterator[FieldError]:
        if not are_usual_config_map_keys(obj.data):
            for key in obj.data:
                yield from validate_with(is_config_map_key, key, _DATA[key])
        if sum(map(len, obj.data.values())) > MAX_DATA_BYTES:
            yield too_long(_DATA, MAX_DATA_BYTES)
        yield from _validate_type(obj)

    def warnings(self, ctx: Context, obj: Secret) -> Iterator[str]:
        if obj.type == TLS and (fault := key_pair_error(obj.data.get("tls.crt", b""), obj.data.get("tls.key", b""))):
            yield fault

    def prepare_for_update(self, ctx: Context, new: Secret, old: Secret) -> None:
        _merge_string_data(new)
        if not new.type:
            new.type = old.type

    def validate_update(self, ctx: Context, new: Secret, old: Secret) -> Iterator[FieldError]:
        if new.type != old.type:
            yield invalid(Path("type"), new.type, "field is immutable")
        if old.immutable:
            if not new.immutable:
                yield forbidden(Path("immutable"), IMMUTABLE)
            if new.data != old.data:
                yield forbidden(_DATA, IMMUTABLE)
        yield from self.validate(ctx, new)


def _merge_string_data(secret: Secret) -> None:
    """Move the values of `stringData`, which clients only write, into `data`, where they override existing values."""
    if secret.string_data:
        for key, text in secret.string_data.items():
            secret.data[key] = text.encode()
        secret.string_data = {}


def default_secret(secret: Secret) -> None:
    """Set the defaults of SetDefaults_Secret, and convert `stringData`."""
    if not secret.type:
        secret.type = "Opaque"
    _merge_string_data(secret)


SECRETS: Final = Resource(
    kind=built_in(Secret, default=default_secret),
    plural="secrets",
    strategy=SecretStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(Column("Type", lambda s: s.type), Column("Data", lambda s: len(s.data)), AGE),
    selectable_fields={"type": lambda s: s.type},
    storage_version_hash="S6u1pOWzb84=",
)
