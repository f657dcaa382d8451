"""ConfigMaps: configuration that pods read as files or variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.core.v1 import ConfigMap
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, forbidden, invalid, too_long
from steersman.machinery.validation.formats import are_usual_config_map_keys, is_config_map_key, total_length
from steersman.machinery.validation.leaves import validate_with
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

MAX_DATA_BYTES: Final = 1 << 20
"""The most bytes of all values of a ConfigMap or Secret together."""
IMMUTABLE: Final = "field is immutable when `immutable` is set"

_DATA: Final = Path("data")
_BINARY_DATA: Final = Path("binaryData")


class ConfigMapStrategy(Strategy[ConfigMap]):
    def validate(self, ctx: Context, obj: ConfigMap) -> Iterator[FieldError]:
        if obj.binary_data or not are_usual_config_map_keys(obj.data):
            yield from _validate_keys(obj)
        size = total_length(obj.data.values(), most=MAX_DATA_BYTES)
        if size + sum(map(len, obj.binary_data.values())) > MAX_DATA_BYTES:
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


def _validate_keys(obj: ConfigMap) -> Iterator[FieldError]:
    for key in obj.data:
        yield from validate_with(is_config_map_key, key, _DATA[key])
        if key in obj.binary_data:
            yield invalid(_DATA[key], key, "duplicate of key present in binaryData")
    for key in obj.binary_data:
        yield from validate_with(is_config_map_key, key, _BINARY_DATA[key])


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
