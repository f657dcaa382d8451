"""Names that upstream keeps for what is configured in files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_OF_FILES: Final = ".static.k8s.io"


def name_warnings(name: str) -> Iterator[str]:
    """What is told of the name of a configuration, or of a policy or a binding."""
    if name.endswith(_OF_FILES):
        yield (
            f'metadata.name: names ending with "{_OF_FILES}" are reserved for static manifest-based configurations and '
            "cannot be managed via the API"
        )
