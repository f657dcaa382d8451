"""The project's documents as their readers use them: tables, links and code blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests import ROOT as ROOT

FILES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "bench/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Document:
    """A Markdown file."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def prose(self) -> str:
        """Return the text without its code blocks."""
        return _FENCE.sub("", self.text)

    def section(self, heading: str) -> str:
        """Return the prose below a heading, up to the next one of its level or above. Fails if the heading is missing."""
        match = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,2}} |\Z)", self.prose, re.MULTILINE | re.DOTALL)
        assert match is not None, f"{self.path.name} has no section {heading!r}"
        return match[2]

    def table(self, heading: str) -> list[tuple[str, ...]]:
        """Return the rows of the tables in a section, without the header rows."""
        rows = []
        for line in self.section(heading).splitlines():
            if line.startswith("|"):
                rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
        heads = {at - 1 for at, row in enumerate(rows) if set(row[0]) <= set("-:")}
        return [row for at, row in enumerate(rows) if at not in heads and at - 1 not in heads]

    def blocks(self, language: str) -> list[str]:
        """Return the code blocks in a language."""
        return [body for found, body in _FENCE.findall(self.text) if found == language]

    def anchors(self) -> set[str]:
        """Return the URL fragments of the headings."""
        headings = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def plain(cell: str) -> str:
    """Return the text of a cell without backticks."""
    return cell.replace("`", "").strip()
