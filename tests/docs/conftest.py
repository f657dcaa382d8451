"""The documents as fixtures."""

from __future__ import annotations

import pytest
from markdown_documents import FILES, Document


@pytest.fixture(scope="session")
def documents() -> dict[str, Document]:
    """The documents by name, e.g. "README" and "compatibility"."""
    return {path.stem: Document(path) for path in FILES}


@pytest.fixture(scope="session")
def compatibility(documents: dict[str, Document]) -> Document:
    return documents["compatibility"]
