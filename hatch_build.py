"""Hooks of the build: descriptions that the package ships, and a README whose links work outside of the repository."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

SITE = "https://steersman.dev"
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


class DescriptionsHook(BuildHookInterface[Any]):
    """Writes `src/steersman/openapi/data/descriptions` before a wheel, sdist or editable installation is made."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files anew. Raises PackageNotFoundError without the build requirement lightkube-models."""
        before = list(sys.path)
        sys.path[:0] = [self.root, str(Path(self.root) / "src")]
        try:
            from tools import type_descriptions
        finally:
            sys.path[:] = before
        type_descriptions.write()


class ReadmeHook(MetadataHookInterface):
    """Makes the README of the package's metadata: its links lead to the documentation site."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`, which pyproject.toml declares as dynamic."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": _LINK.sub(_on_site, text)}


def _on_site(link: re.Match[str]) -> str:
    """Return a link of the README as it is on the site; the page of a file is named like the file."""
    path = link[1].removeprefix("docs/")
    page = {"CHANGELOG.md": "changelog.html", "LICENSE": "source/LICENSE.html"}.get(path, path.replace(".md", ".html"))
    return f"]({SITE}/{page}{link[2] or ''})"


def get_build_hook() -> type[DescriptionsHook]:
    """Return the hook for builds, as this file has two hooks."""
    return DescriptionsHook


def get_metadata_hook() -> type[ReadmeHook]:
    """Return the hook for metadata, as this file has two hooks."""
    return ReadmeHook
