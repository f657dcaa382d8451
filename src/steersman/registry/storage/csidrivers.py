"""CSIDrivers: capabilities and requirements of storage drivers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from steersman.api.storage.v1 import CSIDriver, CSIDriverSpec, TokenRequest
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, duplicate, invalid, not_supported, required
from steersman.machinery.validation.leaves import validate_immutable, validate_supported
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

TOKENS_IN_SECRETS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true "
    "to prevent possible logging of tokens in volume attributes"
)


def set_defaults(driver: CSIDriver) -> None:
    """Set the defaults.

    Volumes are attached and persistent, and the driver gets no pod info and reports no capacity.
    """
    spec = driver.spec
    if spec.attach_required is None:
        spec.attach_required = True
    if spec.pod_info_on_mount is None:
        spec.pod_info_on_mount = False
    if spec.storage_capacity is None:
        spec.storage_capacity = False
    if spec.fs_group_policy is None:
        spec.fs_group_policy = "ReadWriteOnceWithFSType"
    spec.volume_lifecycle_modes = spec.volume_lifecycle_modes or ["Persistent"]
    if spec.requires_republish is None:
        spec.requires_republish = False
    if spec.se_linux_mount is None:
        spec.se_linux_mount = False


FS_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
LIFECYCLE_MODES: Final = ("Persistent", "Ephemeral")
MIN_TOKEN_SECONDS: Final = 600
MIN_UPDATE_PERIOD_SECONDS: Final = 10


def _validate(spec: CSIDriverSpec) -> Iterator[FieldError]:
    path = Path("spec")
    for flag, name in (
        (spec.attach_required, "attachedRequired"),
        (spec.pod_info_on_mount, "podInfoOnMount"),
        (spec.storage_capacity, "storageCapacity"),
    ):
        if flag is None:
            yield required(path / name)
    policy = spec.fs_group_policy
    if policy is not None and policy not in FS_GROUP_POLICIES:
        yield not_supported(path / "fsGroupPolicy", policy, FS_GROUP_POLICIES)
    yield from _validate_token_requests(spec.token_requests, path / "tokenRequests")
    for mode in spec.volume_lifecycle_modes:
        yield from validate_supported(mode, LIFECYCLE_MODES, path / "volumeLifecycleModes")
    if spec.se_linux_mount is None:
        yield required(path / "seLinuxMount")
    period = spec.node_allocatable_update_period_seconds
    if period is not None and period < MIN_UPDATE_PERIOD_SECONDS:
        detail = f"must be greater than or equal to {MIN_UPDATE_PERIOD_SECONDS} seconds"
        yield invalid(path / "nodeAllocatableUpdatePeriodSeconds", period, detail)
    in_secrets = spec.service_account_token_in_secrets
    if in_secrets is not None and not spec.token_requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid(path / "serviceAccountTokenInSecrets", in_secrets, detail)


def _validate_token_requests(requests: list[TokenRequest], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, request in enumerate(requests):
        if request.audience in seen:
            yield duplicate(path[index] / "audience", request.audience)
            continue
        seen.add(request.audience)
        seconds = request.expiration_seconds
        if seconds is not None and seconds < MIN_TOKEN_SECONDS:
            detail = "may not specify a duration less than 10 minutes"
            yield invalid(path[index] / "expirationSeconds", seconds, detail)
        if seconds is not None and seconds > 1 << 32:
            detail = "may not specify a duration larger than 2^32 seconds"
            yield invalid(path[index] / "expirationSeconds", seconds, detail)


class CSIDriverStrategy(Strategy[CSIDriver]):
    allow_unconditional_update = False
    bumps_generation_on = ("spec",)

    def prepare_for_create(self, ctx: Context, driver: CSIDriver) -> None:
        # The feature of the field (VolumeLimitScaling) is off.
        driver.spec.prevent_pod_scheduling_if_missing = None

    def validate(self, ctx: Context, driver: CSIDriver) -> Iterator[FieldError]:
        return _validate(driver.spec)

    def prepare_for_update(self, ctx: Context, new: CSIDriver, old: CSIDriver) -> None:
        if old.spec.prevent_pod_scheduling_if_missing is None:
            new.spec.prevent_pod_scheduling_if_missing = None
        super().prepare_for_update(ctx, new, old)

    def validate_update(self, ctx: Context, new: CSIDriver, old: CSIDriver) -> Iterator[FieldError]:
        spec, before, path = new.spec, old.spec, Path("spec")
        yield from _validate(spec)
        yield from validate_immutable(spec.attach_required, before.attach_required, path / "attachedRequired")
        modes = path / "volumeLifecycleModes"
        yield from validate_immutable(spec.volume_lifecycle_modes, before.volume_lifecycle_modes, modes)

    def warnings_on_create(self, ctx: Context, driver: CSIDriver) -> Iterator[str]:
        if driver.spec.token_requests and driver.spec.service_account_token_in_secrets is None:
            yield TOKENS_IN_SECRETS

    def warnings_on_update(self, ctx: Context, new: CSIDriver, old: CSIDriver) -> Iterator[str]:
        if new.spec.token_requests != old.spec.token_requests:
            yield from self.warnings_on_create(ctx, new)


def token_requests(driver: CSIDriver) -> str:
    """Return the audiences of the requested tokens."""
    requests = driver.spec.token_requests
    return ",".join(request.audience for request in requests) if requests else "<unset>"


CSI_DRIVERS = Resource(
    kind=built_in(CSIDriver, default=set_defaults),
    plural="csidrivers",
    namespaced=False,
    strategy=CSIDriverStrategy(),
    name_validator=name_is_dns_subdomain,
    columns=(
        Column("AttachRequired", lambda d: d.spec.attach_required is not False, type="boolean"),
        Column("PodInfoOnMount", lambda d: bool(d.spec.pod_info_on_mount), type="boolean"),
        Column("StorageCapacity", lambda d: bool(d.spec.storage_capacity), type="boolean"),
        Column("TokenRequests", token_requests),
        Column("RequiresRepublish", lambda d: bool(d.spec.requires_republish), type="boolean"),
        Column("Modes", lambda d: ",".join(d.spec.volume_lifecycle_modes) or "<none>"),
        AGE,
    ),
    returns_deleted_object=True,
    storage_version_hash="hL6j/rwBV5w=",
)
