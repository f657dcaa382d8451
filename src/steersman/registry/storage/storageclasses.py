"""StorageClasses: provisioners of volumes and their parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Final

from steersman.api.core.v1 import TopologySelectorLabelRequirement, TopologySelectorTerm
from steersman.api.storage.v1 import StorageClass
from steersman.kinds.built_in import built_in
from steersman.machinery.built_in.classes import DEFAULT_STORAGE_CLASS, is_default
from steersman.machinery.errors.field import FieldError, Path, duplicate, not_supported, required
from steersman.machinery.validation.leaves import validate_unique
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.machinery.validation.selectors import validate_label_name
from steersman.registry.validation.deprecated_labels import DEPRECATED
from steersman.registry.validation.drivers import validate_parameters, validate_provisioner
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def set_defaults(storage_class: StorageClass) -> None:
    """Set the defaults: volumes are deleted with their claims, and bound at once."""
    if storage_class.reclaim_policy is None:
        storage_class.reclaim_policy = "Delete"
    if storage_class.volume_binding_mode is None:
        storage_class.volume_binding_mode = "Immediate"


RECLAIM_POLICIES: Final = ("Delete", "Retain")
BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")


def _validate(storage_class: StorageClass) -> Iterator[FieldError]:
    yield from validate_provisioner(storage_class.provisioner, Path("provisioner"))
    yield from validate_parameters(storage_class.parameters, Path("parameters"), needed=False)
    policy, mode = storage_class.reclaim_policy, storage_class.volume_binding_mode
    if policy and policy not in RECLAIM_POLICIES:
        yield not_supported(Path("reclaimPolicy"), policy, RECLAIM_POLICIES)
    if mode is None:
        yield required(Path("volumeBindingMode"))
    elif mode not in BINDING_MODES:
        yield not_supported(Path("volumeBindingMode"), mode, BINDING_MODES)
    yield from _validate_topologies(storage_class.allowed_topologies, Path("allowedTopologies"))


def _validate_topologies(terms: list[TopologySelectorTerm], path: Path) -> Iterator[FieldError]:
    seen: Counter[Hashable] = Counter()
    for index, term in enumerate(terms):
        expressions: dict[str, set[str]] = {}
        at = path[index] / "matchLabelExpressions"
        for place, requirement in enumerate(term.match_label_expressions):
            yield from _validate_requirement(requirement, at[place])
            if requirement.key in expressions:
                yield duplicate(at[place] / "key", requirement.key)
            expressions[requirement.key] = set(requirement.values or ())
        # Upstream compares with list entries that are still empty.
        for _ in range(len(terms) if not expressions else 0):
            yield duplicate(at, "")
        alike = frozenset((key, frozenset(values)) for key, values in expressions.items())
        for _ in range(seen[alike]):
            yield duplicate(at, "")
        seen[alike] += 1


def _validate_requirement(requirement: TopologySelectorLabelRequirement, path: Path) -> Iterator[FieldError]:
    values, seen = requirement.values or [], set[str]()
    if not values:
        yield required(path / "values")
    for index, value in enumerate(values):
        yield from validate_unique(value, seen, (path / "values")[index])
    yield from validate_label_name(requirement.key, path / "key")


class StorageClassStrategy(Strategy[StorageClass]):
    immutable = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")

    def validate(self, ctx: Context, storage_class: StorageClass) -> Iterator[FieldError]:
        return _validate(storage_class)

    def validate_update(self, ctx: Context, new: StorageClass, old: StorageClass) -> Iterator[FieldError]:
        yield from _validate(new)
        yield from super().validate_update(ctx, new, old)

    def warnings(self, ctx: Context, storage_class: StorageClass) -> Iterator[str]:
        for index, term in enumerate(storage_class.allowed_topologies):
            path = Path("allowedTopologies")[index] / "matchLabelExpressions"
            for place, requirement in enumerate(term.match_label_expressions):
                if text := DEPRECATED.get(requirement.key):
                    yield f"{path[place] / 'key'}: {text}"


def _name(storage_class: StorageClass) -> str:
    """Return the name, marked if this is the default class."""
    name = storage_class.metadata.name
    return f"{name} (default)" if is_default(storage_class, DEFAULT_STORAGE_CLASS) else name


STORAGE_CLASSES = Resource(
    kind=built_in(StorageClass, default=set_defaults),
    plural="storageclasses",
    namespaced=False,
    short_names=("sc",),
    strategy=StorageClassStrategy(),
    name_cell=_name,
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(
        Column("Provisioner", lambda c: c.provisioner),
        Column("ReclaimPolicy", lambda c: "Delete" if c.reclaim_policy is None else c.reclaim_policy),
        Column("VolumeBindingMode", lambda c: "Immediate" if c.volume_binding_mode is None else c.volume_binding_mode),
        Column("AllowVolumeExpansion", lambda c: bool(c.allow_volume_expansion)),
        AGE,
    ),
    returns_deleted_object=True,
    storage_version_hash="K+m6uJwbjGY=",
)
