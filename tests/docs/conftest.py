"""The documents as fixtures."""

from __future__ import annotations

import pytest

from tests.docs.markdown_documents import FILES, ROOT, Document


@pytest.fixture(scope="session")
def documents() -> dict[str, Document]:
    """The documents by name, e.g. "README", "compatibility" and "bench/README"."""
    names = [path.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/") for path in FILES]
    return {name: Document(path) for name, path in zip(names, FILES, strict=True)}


@pytest.fixture(scope="session")
def compatibility(documents: dict[str, Document]) -> Document:
    return documents["compatibility"]
