"""Parser of ABAC policy files: one JSON object per line (kubernetes `abac.NewFromFile` and `pkg/apis/abac`).

An object is of abac.authorization.kubernetes.io/v1beta1, or of the old version without kind and apiVersion.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import msgspec

from steersman.api.scalars import Wire
from steersman.authentication.user import ALL_AUTHENTICATED
from steersman.authorization.abac import Policy
from steersman.machinery.codec.configuration import Document, Kinds, read_document
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.go.os_errors import reason
from steersman.machinery.go.strings import trim_space
from steersman.machinery.private_files import read_bounded

logger = logging.getLogger(__name__)

_GROUP: Final = "abac.authorization.kubernetes.io"
_V0: Final = f"{_GROUP}/v0"
_V1BETA1: Final = f"{_GROUP}/v1beta1"
_KIND: Final = "Policy"
_ANY: Final = "*"
_LONGEST_LINE: Final = 64 << 10
_MOST: Final = 64 << 20
"""Limit of a file's size in bytes."""


class _Subject(Wire):
    user: str = ""
    group: str = ""
    readonly: bool = False
    resource: str = ""
    namespace: str = ""


class _PolicySpec(_Subject):
    api_group: str = ""
    non_resource_path: str = ""


class _PolicyV1Beta1(Document):
    spec: _PolicySpec = msgspec.field(default_factory=_PolicySpec)


class _PolicyV0(_Subject):
    kind: str = ""
    api_version: str = ""


_KINDS: Final[Kinds[_PolicyV0 | _PolicyV1Beta1]] = {(_V0, _KIND): _PolicyV0, (_V1BETA1, _KIND): _PolicyV1Beta1}


class PolicyFileError(ValueError):
    """The file cannot be used; the text is upstream's."""


def read_policies(path: Path) -> list[Policy]:
    """Return the policies of a file; empty lines and lines with a leading `#` are skipped. Raises PolicyFileError."""
    try:
        lines = read_bounded(path, _MOST).split(b"\n")
    except OSError as error:
        raise PolicyFileError(f"open {path}: {reason(error)}") from None
    found: list[Policy] = []
    is_old = False
    for number, line in enumerate(lines, 1):
        if len(line) >= _LONGEST_LINE:
            raise PolicyFileError(f"error reading policy file {path}: bufio.Scanner: token too long")
        text = trim_space(line.decode("utf-8", "replace"))
        if not text or text.startswith("#"):
            continue
        try:
            policy, has_version = _read(line.removesuffix(b"\r"))
        except DecodeError as error:
            shown = line.decode("utf-8", "replace")
            raise PolicyFileError(f"error reading policy file {path}, line {number}: {shown}: {error}") from None
        found.append(policy)
        is_old = is_old or not has_version
    if is_old:
        logger.warning("Policy file %s contained unversioned rules, see Kubernetes' documents on ABAC", path)
    return found


def _read(line: bytes) -> tuple[Policy, bool]:
    """Return the policy of a line, and True if the line has a kind and an apiVersion. Raises DecodeError."""
    given = read_document(line, _KINDS, strict=False, default=(_V0, _KIND))
    has_version = bool(given.kind and given.api_version)
    return (_of_v0(given) if isinstance(given, _PolicyV0) else _of_v1beta1(given.spec)), has_version


def _of_v1beta1(spec: _PolicySpec) -> Policy:
    user, group = spec.user, spec.group
    if _ANY in (user, group):  # all authenticated users
        user, group = "", ALL_AUTHENTICATED
    return Policy(
        user,
        group,
        spec.readonly,
        spec.api_group,
        spec.resource,
        spec.namespace,
        spec.non_resource_path,
    )


def _of_v0(given: _PolicyV0) -> Policy:
    """Convert a policy of the old version: empty fields match anything, and it has no API groups."""
    user, group = given.user, given.group
    if _ANY in (user, group) or not (user or group):
        user, group = "", ALL_AUTHENTICATED
    namespace, resource = given.namespace, given.resource
    return Policy(
        user,
        group,
        given.readonly,
        _ANY,
        resource or _ANY,
        namespace or _ANY,
        "" if namespace or resource else _ANY,
    )
