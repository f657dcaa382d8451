"""LeaseCandidates: candidates for a Lease with their versions (coordinated leader election)."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from steersman.api.coordination import v1alpha2
from steersman.api.coordination.v1beta1 import LeaseCandidate, LeaseCandidateSpec
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, invalid, not_supported, required
from steersman.machinery.validation.formats import is_config_map_key, is_qualified_name
from steersman.machinery.validation.leaves import validate_with
from steersman.machinery.validation.semver import ZERO, Semver, parse_semver
from steersman.registry.older_version import deprecated, older_version
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy

OLDEST_EMULATION_VERSION: Final = "OldestEmulationVersion"

_SPEC: Final = Path("spec")


def lease_candidate_name(name: str, prefix: bool) -> list[str]:
    """Return the errors of a name, which may be any ConfigMap key; a prefix may end with a dash."""
    return is_config_map_key(name)


def _validate_spec(spec: LeaseCandidateSpec) -> Iterator[FieldError]:
    if not spec.lease_name:
        yield required(_SPEC / "leaseName")
    emulation = ZERO
    if spec.emulation_version:
        emulation = yield from _version(spec.emulation_version, _SPEC / "emulationVersion")
    binary = ZERO
    if not spec.binary_version:
        yield required(_SPEC / "binaryVersion")
    else:
        binary = yield from _version(spec.binary_version, _SPEC / "binaryVersion")
    if spec.binary_version and spec.emulation_version and binary < emulation:
        yield invalid(
            _SPEC / "binaryVersion", spec.binary_version, "must be greater than or equal to `emulationVersion`"
        )
    if not spec.strategy:
        yield required(_SPEC / "strategy")
        return
    if spec.strategy == OLDEST_EMULATION_VERSION and emulation == ZERO:
        detail = f"must be specified when `strategy` is '{OLDEST_EMULATION_VERSION}'"
        yield required(_SPEC / "emulationVersion", detail)
    yield from _validate_election(spec.strategy, _SPEC.child("strategy", "strategy"))


def _version(text: str, path: Path) -> Generator[FieldError, None, Semver]:
    """Parse a version; yield an error and return zero if it is invalid."""
    version = parse_semver(text)
    if version is None:
        yield invalid(path, text, "must be a valid semantic version")
    return version or ZERO


def _validate_election(strategy: str, path: Path) -> Iterator[FieldError]:
    """Validate a strategy: Kubernetes' own, or any name with a domain prefix."""
    if "/" not in strategy:
        if strategy != OLDEST_EMULATION_VERSION:
            yield not_supported(path, strategy, (OLDEST_EMULATION_VERSION,))
        return
    yield from validate_with(is_qualified_name, strategy, path)


class LeaseCandidateStrategy(Strategy[LeaseCandidate]):
    immutable = ("spec/leaseName",)
    allow_create_on_update = True
    allow_unconditional_update = False
    metadata_on_update = "twice"

    def validate(self, ctx: Context, candidate: LeaseCandidate) -> Iterator[FieldError]:
        return _validate_spec(candidate.spec)

    def validate_update(self, ctx: Context, new: LeaseCandidate, old: LeaseCandidate) -> Iterator[FieldError]:
        yield from _validate_spec(new.spec)
        yield from super().validate_update(ctx, new, old)


LEASE_CANDIDATES: Final = Resource(
    kind=built_in(LeaseCandidate),
    plural="leasecandidates",
    strategy=LeaseCandidateStrategy(),
    name_validator=lease_candidate_name,
    columns=(
        Column("LeaseName", lambda c: c.spec.lease_name),
        Column("BinaryVersion", lambda c: c.spec.binary_version),
        Column("EmulationVersion", lambda c: c.spec.emulation_version),
        AGE,
    ),
    storage_version_hash="lvME0iHWE20=",
    deprecation_warning=deprecated(LeaseCandidate, "1.36", "1.39"),
    other_versions=(
        older_version(LeaseCandidate, v1alpha2.LeaseCandidate, deprecated(v1alpha2.LeaseCandidate, "1.35", "1.38")),
    ),
)
