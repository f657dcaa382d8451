"""Files with roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class RoleFileError(ValueError):
    """A file cannot be read, or has no role."""


def rules_of(path: Path) -> list[Any]:
    """Return the rules of all Roles and ClusterRoles in a file. Raises RoleFileError."""
    from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents

    try:
        documents = read_documents(path)
    except YAMLFileError as error:
        raise RoleFileError(str(error)) from None
    roles = [each for each in documents if isinstance(each, dict) and each.get("kind") in ("Role", "ClusterRole")]
    if not roles:
        raise RoleFileError(f"{path}: no Role and no ClusterRole in it")
    lists = [each.get("rules") or [] for each in roles]
    if not all(isinstance(each, list) for each in lists):
        raise RoleFileError(f"{path}: rules that are no list")
    return [rule for each in lists for rule in each]
