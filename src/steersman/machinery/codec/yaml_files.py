"""Files in YAML that users write and name to a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steersman.machinery.codec.yaml import YAMLError, load_all


class YAMLFileError(ValueError):
    """A file that cannot be read; the text names it, and the line of what is wrong."""


def read_documents(path: Path) -> list[Any]:
    """Return all documents of a file in YAML or JSON, as JSON values, None for an empty one.

    As kubectl does with manifests, a key given twice is refused. Raises YAMLFileError.
    """
    try:
        return load_all(path.read_bytes())
    except YAMLError as error:
        raise YAMLFileError(f"{path}: {error}") from None
    except OSError as error:
        raise YAMLFileError(f"{path}: {error.strerror or error}") from None
