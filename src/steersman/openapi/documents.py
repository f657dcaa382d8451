"""The OpenAPI documents of the built-in resources, as they lie in the package: compressed, without descriptions."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

Tree = dict[str, Any]
"""A decoded JSON object."""

_FOLDER: Final = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One document in the package. `sha256` is that of its JSON."""

    file: str
    sha256: str

    def load(self) -> Tree:
        """Decodes the document anew: the caller may change it."""
        tree: Tree = orjson.loads(gzip.decompress((_FOLDER / self.file).read_bytes()))
        return tree


@dataclass(frozen=True, slots=True)
class Manifest:
    """What there is: the OpenAPI v2 document, and the v3 documents by name ("api/v1", "apis/apps", "version").

    `v2` has what is served by default, `v2_on_request` what --runtime-config can add. `v3` has both.
    """

    v2: StoredDocument
    v2_on_request: StoredDocument
    v3: dict[str, StoredDocument]


@cache
def manifest() -> Manifest:
    """The package's manifest, read at the first call."""
    return msgspec.json.decode((_FOLDER / "manifest.json").read_bytes(), type=Manifest)
