"""The file of ABAC's policies: one JSON object a line, of abac.authorization.kubernetes.io/v1beta1 or of no version
(kubernetes `abac.NewFromFile` and `pkg/apis/abac`)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

from steersman.authentication.user import ALL_AUTHENTICATED
from steersman.authorization.abac import Policy
from steersman.machinery.codec.configuration import BOOL, STRING, document_type, media_of, struct_type
from steersman.machinery.codec.strict import DecodeError, decode_as, peek_type_meta
from steersman.machinery.go.os_errors import reason
from steersman.machinery.go.strings import trim_space
from steersman.machinery.identity.schema import GroupVersionError, no_kind_registered, parse_group_version
from steersman.machinery.private_files import read_bounded

logger = logging.getLogger(__name__)

_GROUP: Final = "abac.authorization.kubernetes.io"
_V0: Final = f"{_GROUP}/v0"
_V1BETA1: Final = f"{_GROUP}/v1beta1"
_KIND: Final = "Policy"
_ANY: Final = "*"
_LONGEST_LINE: Final = 64 << 10
_MOST: Final = 64 << 20
"""Bytes of a file."""

_SUBJECT: Final = {"user": STRING, "group": STRING, "readonly": BOOL, "resource": STRING, "namespace": STRING}
_SPEC: Final = struct_type("v1beta1.PolicySpec", {**_SUBJECT, "apiGroup": STRING, "nonResourcePath": STRING})
_TYPES: Final = {
    _V0: document_type("v0.Policy", _SUBJECT),
    _V1BETA1: document_type("v1beta1.Policy", {"spec": _SPEC}),
}


class PolicyFileError(ValueError):
    """The file cannot be used; the text is upstream's."""


def read_policies(path: Path) -> list[Policy]:
    """The policies of a file; lines that are empty or begin with `#` are passed over. Raises PolicyFileError."""
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
    """The policy of a line, and whether it says what it is. Raises DecodeError."""
    media = media_of(line)
    api_version, kind = peek_type_meta(line, media)
    has_version = kind == _KIND and api_version in _TYPES
    if not has_version:
        api_version, kind = api_version or _V0, kind or _KIND
        if kind != _KIND or api_version not in _TYPES:
            try:
                version = parse_group_version(api_version)
            except GroupVersionError as error:
                raise DecodeError(str(error)) from None
            raise DecodeError(no_kind_registered(kind, str(version)))
    plain = decode_as(_TYPES[api_version], line, media, want_strict=False).obj or {}
    return (_of_v0(plain) if api_version == _V0 else _of_v1beta1(plain.get("spec") or {})), has_version


def _of_v1beta1(spec: dict[str, Any]) -> Policy:
    user, group = spec.get("user", ""), spec.get("group", "")
    if _ANY in (user, group):  # all who are authenticated
        user, group = "", ALL_AUTHENTICATED
    return Policy(
        user,
        group,
        spec.get("readonly", False),
        spec.get("apiGroup", ""),
        spec.get("resource", ""),
        spec.get("namespace", ""),
        spec.get("nonResourcePath", ""),
    )


def _of_v0(given: dict[str, Any]) -> Policy:
    """What is not said stands for anything there; groups of the API were not told apart yet."""
    user, group = given.get("user", ""), given.get("group", "")
    if _ANY in (user, group) or not (user or group):
        user, group = "", ALL_AUTHENTICATED
    namespace, resource = given.get("namespace", ""), given.get("resource", "")
    return Policy(
        user,
        group,
        given.get("readonly", False),
        _ANY,
        resource or _ANY,
        namespace or _ANY,
        "" if namespace or resource else _ANY,
    )
