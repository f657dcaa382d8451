"""Validation of the CustomResourceDefinitions of declared classes, as kube-apiserver validates them.

The validation takes some milliseconds, and imports all of CEL if there are rules. A server records valid definitions in
its folder, so that the next start can skip it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from steersman.library.declaration import Declaration
from steersman.library.definition import plain_definition
from steersman.library.definition_error import DefinitionError
from steersman.machinery.codec.serializer import decoder, encode
from steersman.machinery.private_files import write_whole
from steersman.server.version import GIT_VERSION

logger = logging.getLogger(__name__)

_NOTE: Final = "definitions.json"


class _Note(msgspec.Struct, forbid_unknown_fields=True):
    """Digests of the JSON of definitions that a version of the server has found valid."""

    version: str
    good: list[str]


def check_definition(declaration: Declaration) -> None:
    """Raise DefinitionError for a definition that kube-apiserver would refuse, or that cannot be expressed."""
    from steersman.api.apiextensions.v1 import CustomResourceDefinition
    from steersman.registry.apiextensions.defaults import set_defaults
    from steersman.registry.apiextensions.validation import validate_definition

    try:
        definition = decoder(CustomResourceDefinition).decode(encode(plain_definition(declaration)))
    except msgspec.ValidationError as error:  # a fact, or a member of an OpenAPI, of another type
        raise DefinitionError(f"{declaration.kind}: {error}") from None
    set_defaults(definition)
    definition.status.stored_versions = [declaration.stored.name]
    found = list(validate_definition(definition))
    if found:
        raise DefinitionError(f"{declaration.kind}: " + "; ".join(map(str, found)))


def check_definitions(declarations: Iterable[Declaration], folder: Path) -> None:
    """Check the declarations that are not recorded in the folder as valid. Raises DefinitionError and OSError."""
    path = folder / _NOTE
    known = _valid_digests(path)
    good = {_digest(each): each for each in declarations}
    for digest, declaration in good.items():
        if digest not in known:
            check_definition(declaration)
    if not good.keys() <= known:
        write_whole(path, msgspec.json.encode(_Note(GIT_VERSION, sorted(good))), 0o644)


def _digest(declaration: Declaration) -> str:
    return hashlib.sha256(encode(plain_definition(declaration))).hexdigest()


def _valid_digests(path: Path) -> frozenset[str]:
    """Return the recorded digests; none if the file is missing, invalid or of another version, which only costs time."""
    try:
        note = msgspec.json.decode(path.read_bytes(), type=_Note)
    except FileNotFoundError:
        return frozenset()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        logger.warning("%s cannot be read and will be replaced: %s", path, error)
        return frozenset()
    return frozenset(note.good) if note.version == GIT_VERSION else frozenset()
