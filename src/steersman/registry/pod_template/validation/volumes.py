"""Validation of the volumes of pods: one source each, and sources with files (ConfigMaps, Secrets, projections...).

Storage systems are validated in `volume_sources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from operator import attrgetter
from typing import Final

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    quote,
    required,
)
from steersman.machinery.validation.formats import is_dns1123_label
from steersman.machinery.validation.leaves import validate_choice, validate_required
from steersman.machinery.validation.object_meta import name_is_dns_subdomain, validate_annotations
from steersman.machinery.validation.selectors import validate_labels
from steersman.machinery.values.quantity import parse
from steersman.registry.pod_template.validation.claims import validate_claim_spec
from steersman.registry.pod_template.validation.downward import (
    VOLUME_FIELDS,
    validate_object_field_selector,
    validate_resource_field_selector,
)
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.paths import (
    validate_descending_path,
    validate_file_mode,
    validate_local_path,
    validate_no_backsteps,
)
from steersman.registry.pod_template.validation.volume_sources import RULES, Rule, requires, validate_iscsi_name_length

ONE_TYPE_ONLY: Final = "may not specify more than 1 volume type"
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)

_LONGEST_TOKEN_EXPIRATION: Final = 1 << 32
"""Seconds."""

Volumes = Mapping[str, core.Volume]
"""The valid volumes of a pod by name."""


def validate_volumes(
    volumes: list[core.Volume], metadata: ObjectMeta | None, path: Path, options: PodValidationOptions
) -> tuple[dict[str, core.Volume], list[FieldError]]:
    """Return the valid volumes, and the errors of the others.

    `metadata` is the pod's, None in a template: claims of ephemeral volumes are named after the pod.
    """
    pod_name = metadata.name if metadata is not None else ""
    created = {f"{pod_name}-{v.name}" for v in volumes if v.ephemeral is not None} if pod_name else set()
    valid: dict[str, core.Volume] = {}
    errors: list[FieldError] = []
    for index, volume in enumerate(volumes):
        here = path[index]
        found = list(_validate_volume(volume, pod_name, here, options))
        if volume.name in valid:
            found.append(duplicate(here / "name", volume.name))
        if found:
            errors += found
        else:
            valid[volume.name] = volume
        claim = volume.persistent_volume_claim
        if claim is not None and claim.claim_name in created:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(here.child("persistentVolumeClaim", "claimName"), claim.claim_name, text))
    return valid, errors


def _validate_volume(
    volume: core.Volume, pod_name: str, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    found = False
    for attribute, name, validate, misnamed in compress(_SOURCES, _sources(volume)):
        source = getattr(volume, attribute)
        if found:
            yield forbidden(path / misnamed, ONE_TYPE_ONLY)
        else:
            found = True
            yield from validate(source, path / name, options)
            if attribute == "ephemeral":
                yield from _validate_claim_name(volume.name, pod_name, path)
        if attribute == "iscsi" and source.initiator_name is not None:
            yield from validate_iscsi_name_length(volume.name, source, path)
    if not found:
        yield required(path, "must specify a volume type")
    yield from validate_required(is_dns1123_label, volume.name, path / "name")


def _validate_claim_name(name: str, pod_name: str, path: Path) -> Iterator[FieldError]:
    if pod_name and name:
        claim = f"{pod_name}-{name}"
        for message in name_is_dns_subdomain(claim, False):
            yield invalid(path / "name", name, f"PVC name {quote(claim)}: {message}")


def _validate_empty_dir(
    source: core.EmptyDirVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if source.size_limit is not None and parse(source.size_limit).sign < 0:
        yield forbidden(path / "sizeLimit", "SizeLimit field must be a valid resource quantity")


def validate_host_path(
    source: core.HostPathVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate a path on the node."""
    if not source.path:
        yield required(path / "path")
        return
    yield from validate_no_backsteps(source.path, path / "path")
    if source.type is not None and source.type not in HOST_PATH_TYPES:
        yield not_supported(path / "type", source.type, HOST_PATH_TYPES)


def _validate_git_repo(
    source: core.GitRepoVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    yield from validate_descending_path(source.directory, path / "directory")


def _validate_files(
    source: core.SecretVolumeSource | core.ConfigMapVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    yield from validate_file_mode(source.default_mode, path / "defaultMode")
    for index, item in enumerate(source.items):
        yield from _validate_key_to_path(item, (path / "items")[index])


def _validate_key_to_path(item: core.KeyToPath, path: Path) -> Iterator[FieldError]:
    if not item.key:
        yield required(path / "key")
    if not item.path:
        yield required(path / "path")
    yield from validate_local_path(item.path, path / "path")
    if item.mode is not None:
        yield from validate_file_mode(item.mode, path / "mode")


def _validate_downward_api(
    source: core.DownwardAPIVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    yield from validate_file_mode(source.default_mode, path / "defaultMode")
    for file in source.items:
        yield from _validate_downward_file(file, path)


def _validate_downward_file(file: core.DownwardAPIVolumeFile, path: Path) -> Iterator[FieldError]:
    if not file.path:
        yield required(path / "path")
    yield from validate_local_path(file.path, path / "path")
    if file.field_ref is not None:
        yield from validate_object_field_selector(file.field_ref, VOLUME_FIELDS, path / "fieldRef")
        if file.resource_field_ref is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif file.resource_field_ref is not None:
        yield from validate_resource_field_selector(
            file.resource_field_ref, path / "resourceFieldRef", container_needed=True
        )
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    if file.mode is not None:
        yield from validate_file_mode(file.mode, path / "mode")


def _validate_projected(
    source: core.ProjectedVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    yield from validate_file_mode(source.default_mode, path / "defaultMode")
    paths: set[str] = set()
    for index, projection in enumerate(source.sources or ()):
        yield from _validate_projection(projection, (path / "sources")[index], path, paths, options)


def _validate_projection(
    projection: core.VolumeProjection, path: Path, parent: Path, paths: set[str], options: PodValidationOptions
) -> Iterator[FieldError]:
    """Validate one source; `paths` has the files of the sources before it. Upstream reports some errors at `parent`."""
    sources = 0
    if projection.secret is not None:
        sources += 1
        yield from _validate_projected_items(projection.secret, path / "secret", parent, paths)
    if projection.config_map is not None:
        sources += 1
        yield from _validate_projected_items(projection.config_map, path / "configMap", parent, paths)
    if projection.downward_api is not None:
        sources += 1
        for file in projection.downward_api.items:
            yield from _validate_downward_file(file, path / "downwardAPI")
            if file.path:
                yield from _validate_unique_path(file.path, file.path, parent, paths)
    if projection.service_account_token is not None:
        sources += 1
        yield from _validate_token(projection.service_account_token, path / "serviceAccountToken", parent, options)
    if sources > 1:
        yield forbidden(path, "may not specify more than 1 volume type per source")


def _validate_projected_items(
    source: core.SecretProjection | core.ConfigMapProjection, path: Path, parent: Path, paths: set[str]
) -> Iterator[FieldError]:
    if not source.name:
        yield required(path / "name")
    for index, item in enumerate(source.items):
        yield from _validate_key_to_path(item, (path / "items")[index])
        if item.path:
            yield from _validate_unique_path(item.path, source.name, parent, paths)


def _validate_unique_path(target: str, shown: str, parent: Path, paths: set[str]) -> Iterable[FieldError]:
    if target in paths:
        return [invalid(parent, shown, "conflicting duplicate paths")]
    paths.add(target)
    return ()


def _validate_token(
    token: core.ServiceAccountTokenProjection, path: Path, parent: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    expiration = token.expiration_seconds or 0
    if expiration < 600:
        yield invalid(path / "expirationSeconds", expiration, "may not specify a duration less than 10 minutes")
    if expiration > _LONGEST_TOKEN_EXPIRATION:
        yield invalid(path / "expirationSeconds", expiration, "may not specify a duration larger than 2^32 seconds")
    if not token.path:
        yield required(parent / "path")
    elif not options.allow_non_local_token_path:
        yield from validate_local_path(token.path, parent / "path")


def _validate_image(source: core.ImageVolumeSource, path: Path, options: PodValidationOptions) -> Iterator[FieldError]:
    if options.is_pod and not source.reference:
        yield required(path / "reference")
    yield from validate_pull_policy(source.pull_policy, path / "pullPolicy")


def validate_pull_policy(policy: str, path: Path) -> Iterator[FieldError]:
    """Validate an image pull policy."""
    yield from validate_choice(policy, PULL_POLICIES, path)


def _validate_ephemeral(
    source: core.EphemeralVolumeSource, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if source.volume_claim_template is None:
        yield required(path / "volumeClaimTemplate")
        return
    here = path / "volumeClaimTemplate"
    yield from _validate_claim_metadata(source.volume_claim_template.metadata, here / "metadata")
    yield from validate_claim_spec(source.volume_claim_template.spec, here / "spec")


def _validate_claim_metadata(metadata: ObjectMeta, path: Path) -> Iterator[FieldError]:
    """Forbid all metadata but labels and annotations, which alone are copied to the claim."""
    yield from validate_annotations(metadata.annotations, path / "annotations")
    yield from validate_labels(metadata.labels, path / "labels")
    for attribute, name in zip(metadata.__struct_fields__, metadata.__struct_encode_fields__, strict=True):
        if attribute not in ("labels", "annotations") and getattr(metadata, attribute):
            yield forbidden(path / ("uID" if attribute == "uid" else name), "cannot be set")


_RULES: Final[dict[str, Rule]] = {
    **RULES,
    "config_map": requires(_validate_files, name="name"),
    "downward_api": _validate_downward_api,
    "empty_dir": _validate_empty_dir,
    "ephemeral": _validate_ephemeral,
    "git_repo": requires(_validate_git_repo, repository="repository"),
    "host_path": validate_host_path,
    "image": _validate_image,
    "persistent_volume_claim": requires(claim_name="claimName"),
    "projected": _validate_projected,
    "secret": requires(_validate_files, secret_name="secretName"),
}
_ORDER: Final = (
    "empty_dir",
    "host_path",
    "git_repo",
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistent_volume_claim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downward_api",
    "fc",
    "flex_volume",
    "config_map",
    "azure_file",
    "vsphere_volume",
    "photon_persistent_disk",
    "portworx_volume",
    "azure_disk",
    "storageos",
    "projected",
    "scale_io",
    "csi",
    "ephemeral",
    "image",
)
"""Attributes of a Volume with a source, in the order in which upstream validates them."""
_NAMES: Final = dict(zip(core.Volume.__struct_fields__, core.Volume.__struct_encode_fields__, strict=True))
_MISNAMED: Final = {"gce_persistent_disk": "persistentDisk"}
"""Names in the paths of errors that differ from the JSON names, as upstream's do."""
_MISNAMED_IF_SECOND: Final = {"cephfs": "cephFS", "downward_api": "downwarAPI"}
"""Names in the error about a second source that differ from the JSON names, as upstream's do."""
_SOURCES: Final = tuple(
    (each, _MISNAMED.get(each, _NAMES[each]), _RULES[each], _MISNAMED_IF_SECOND.get(each, _NAMES[each]))
    for each in _ORDER
)
"""Attribute, name in paths, rule, and name in the error about a second source."""

_sources: Final = attrgetter(*_ORDER)
