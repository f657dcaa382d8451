"""YAML files that users pass to a program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steersman.machinery.codec.document_streams import pieces
from steersman.machinery.codec.yaml import YAMLError, load_all


class YAMLFileError(ValueError):
    """The error for a file that cannot be read; the message has its path, and the line of a syntax error."""


def read_documents(path: Path) -> list[Any]:
    """Return all documents of a YAML or JSON file as JSON values, None for an empty one.

    Repeated keys are refused, as kubectl does for manifests. Raises YAMLFileError.
    """
    try:
        return list(_values(path.read_bytes()))
    except YAMLError as error:
        raise YAMLFileError(f"{path}: {error}") from None
    except OSError as error:
        raise YAMLFileError(f"{path}: {error.strerror or error}") from None


def _values(data: bytes) -> Iterator[Any]:
    """Yield the values of a stream's documents. Raises YAMLError."""
    for piece in pieces(data):
        yield from piece.read(load_all)
