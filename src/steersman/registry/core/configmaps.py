"""ConfigMaps: configuration that pods read as files or variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import ConfigMap
from steersman.kinds.built_in import built_in
from steersman.machinery.field import FieldError, Path, forbidden, invalid, too_long
from steersman.machinery.validation.formats import byte_length, is_config_map_key
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

MAX_DATA_BYTES: Final = 1 << 20
"""All values of a ConfigMap or Secret together."""
IMMUTABLE: Final = "field is immutable when `immutable` is set"

_DATA: Final = Path("data")
_BINARY_DATA: Final = Path("binaryData")


class ConfigMapStrategy(Strategy[ConfigMap]):
    def validate(self, ctx: Context, obj: ConfigMap) -> Iterator[FieldError]:
        size = 0
        for key, value in obj.data.items():
            for message in is_config_map_key(key):
                yield invalid(_DATA[key], key, message)
            if key in obj.binary_data:
                yield invalid(_DATA[key], key, "duplicate of key present in binaryData")
            size += byte_length(value)
        for key, content in obj.binary_data.items():
            for message in is_config_map_key(key):
                yield invalid(_BINARY_DATA[key], key, message)
            size += len(content)
        if size > MAX_DATA_BYTES:
            yield too_long(Path(""), MAX_DATA_BYTES)

    def validate_update(self, ctx: Context, new: ConfigMap, old: ConfigMap) -> Iterator[FieldError]:
        if old.immutable:
            if not new.immutable:
                yield forbidden(Path("immutable"), IMMUTABLE)
            if new.data != old.data:
                yield forbidden(_DATA, IMMUTABLE)
            if new.binary_data != old.binary_data:
                yield forbidden(_BINARY_DATA, IMMUTABLE)
        yield from self.validate(ctx, new)


CONFIG_MAPS: Final = Resource(
    kind=built_in(ConfigMap),
    plural="configmaps",
    short_names=("cm",),
    strategy=ConfigMapStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(Column("Data", lambda c: len(c.data) + len(c.binary_data)), AGE),
    storage_version_hash="qFsyl6wFWjQ=",
)
