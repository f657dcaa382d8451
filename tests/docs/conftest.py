"""The documents as fixtures."""

from __future__ import annotations

import pytest

from tests.docs.markdown_documents import FILES, ROOT, Document
from tools.site_pages import PAGES


@pytest.fixture(scope="session")
def documents() -> dict[str, Document]:
    """The documents by name, e.g. "README", "compatibility" and "bench/README"."""
    names = [path.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/") for path in FILES]
    return {name: Document(path) for name, path in zip(names, FILES, strict=True)}


@pytest.fixture(scope="session")
def compatibility(documents: dict[str, Document]) -> Document:
    return documents["compatibility"]


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Document]:
    """Pages that are made of the code, by name, e.g. "flags"."""
    folder = tmp_path_factory.mktemp("reference")
    pages = {}
    for name in ("flags", "resources", "limits", "modules"):
        pages[name] = Document(folder / f"{name}.md")
        pages[name].path.write_text("\n".join(PAGES[f"reference/{name}.md"]()))
    return pages
