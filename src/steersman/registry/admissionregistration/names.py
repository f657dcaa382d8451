"""Names that upstream reserves for configurations from files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_OF_FILES: Final = ".static.k8s.io"


def name_warnings(name: str) -> Iterator[str]:
    """Yield a warning if the name of a configuration, policy or binding is reserved."""
    if name.endswith(_OF_FILES):
        yield (
            f'metadata.name: names ending with "{_OF_FILES}" are reserved for static manifest-based configurations and '
            "cannot be managed via the API"
        )
