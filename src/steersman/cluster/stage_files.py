"""Files and folders with Stage objects of kwok."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from steersman.cluster.configuration import Configuration, ConfigurationError
from steersman.cluster.initial_objects import SUFFIXES, documents_of
from steersman.nodes.stages.declaration import API_GROUP, StageError
from steersman.nodes.stages.stage_set import Stages

logger = logging.getLogger(__name__)

_MOST_NESTED: Final = 10
"""Depth of nested lists."""


def stages_of(configuration: Configuration) -> Stages:
    """Return the stages in a cluster's configuration file, and in the files and folders that it names.

    Of a folder only its own files are read, not those of subfolders. Documents that are no stages, such as
    kustomizations and kwok's own configuration, are skipped with a log line. Raises ConfigurationError for invalid
    files and stages, and for a path without any stage.
    """
    found = list(_among(configuration.documents, str(configuration.file)))
    for path in configuration.stages:
        here = [stage for file in _files(path) for stage in _among(documents_of(file), str(file))]
        if not here:
            raise ConfigurationError(f"{path}: no Stage of {API_GROUP} is there")
        found += here
    try:
        return Stages.parse(found, configuration.seed)
    except StageError as error:
        raise ConfigurationError(str(error)) from None


def _files(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.suffix in SUFFIXES) if path.is_dir() else [path]


def _among(documents: Iterable[Any], where: str, nested: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the stages among documents, each with the place where it was found."""
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind == "Stage" and str(document.get("apiVersion", "")).startswith(f"{API_GROUP}/"):
            yield where, document
        elif kind in ("List", "StageList") and nested < _MOST_NESTED:
            yield from _among(document.get("items") or (), where, nested + 1)
        elif document is not None:
            logger.warning("%s: a document (%s) is no Stage of %s and is passed over", where, kind, API_GROUP)
