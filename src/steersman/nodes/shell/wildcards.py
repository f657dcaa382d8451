"""Pathname expansion: words with wildcards are replaced by the paths that they match."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from steersman.nodes.shell.effects import MOST_PATH, Work, World
from steersman.nodes.shell.paths import logical
from steersman.nodes.shell.patterns import glob, glob_work
from steersman.work.patterns import late_pattern

_SPECIAL: Final = late_pattern(r"([\\*?\[\]])")
_ESCAPED: Final = late_pattern(r"\\(.)", re.DOTALL)
_WILDCARD: Final = late_pattern(r"[*?\[]")
_HAS_WILDCARD: Final = late_pattern(r"(?:[^\\]|\\.)*?[*?\[]", re.DOTALL)
_MOST_PARTS: Final = 32
"""Parts of a path with wildcards; a longer path is taken literally."""
_MOST_MATCHES: Final = 1 << 12
_MOST_NAME: Final = 255
"""Bytes of a file's name in Linux."""
_AT_ONCE: Final = 64
"""Paths and names that are processed between two effects."""
Pieces = list[tuple[str, bool]]
"""Parts of a word, each with True if it is quoted; wildcards in quotes are literal."""


def quoted(text: str) -> str:
    """Return a pattern that matches only the given text."""
    return _SPECIAL.sub(r"\\\1", text)


def matching(world: World, pieces: Pieces) -> Work[list[str]]:
    """Return the paths that a word matches, in order; the word's text if there are none, or if it has no wildcards."""
    text = "".join([each for each, _ in pieces])
    if len(text) > MOST_PATH or not any(not is_quoted and _WILDCARD.search(each) for each, is_quoted in pieces):
        return [text]
    pattern = "".join([quoted(each) if is_quoted else each.replace("\\", "\\\\") for each, is_quoted in pieces])
    parts = pattern.split("/")
    if len(parts) > _MOST_PARTS or not any(map(_is_wild, parts)):
        return [text]
    children = yield from _children(world)
    paths = [""]
    for number, part in enumerate(parts):
        beginning = "/" if number else ""
        if not _is_wild(part):
            name = _ESCAPED.sub(r"\1", part)
            paths = [each + beginning + name for each in paths]
            continue
        matched: list[str] = []
        for each in paths:
            folder = world.resolved(logical(world, each or ("/" if number else ".")))
            yield from world.spend(files=_AT_ONCE)
            for name in sorted(children.get(folder, ())):
                yield from world.spend(len(name) + glob_work(part, len(name)))
                if len(name) > _MOST_NAME or name.startswith(".") != part.startswith(".") or not glob(part, name):
                    continue
                if number == len(parts) - 1 or world.resolved(posixpath.join(folder, name)) in children:
                    matched.append(each + beginning + name)
            if len(matched) > _MOST_MATCHES:
                return [text]
        paths = matched
    if not _is_wild(parts[-1]):
        paths = [each for each in paths if _is_there(world, children, each)]
    return paths or [text]


def _is_wild(part: str) -> bool:
    return _HAS_WILDCARD.match(part) is not None


def _is_there(world: World, children: dict[str, set[str]], path: str) -> bool:
    place = logical(world, path)
    return world.resolved(place) in children or posixpath.basename(place) in children.get(
        world.resolved(posixpath.dirname(place)), ()
    )


def _children(world: World) -> Work[dict[str, set[str]]]:
    """Return the names in each folder, by the folder's path."""
    children: dict[str, set[str]] = {"/": set()}
    for number, path in enumerate((*world.folders, *world.files)):
        place = path.rstrip("/")
        if path.endswith("/") or path in world.folders:
            children.setdefault(place or "/", set())
        for _ in range(_MOST_PARTS):
            folder, _, name = place.rpartition("/")
            names = children.setdefault(folder or "/", set())
            if not name or name in names:
                break
            names.add(name)
            place = folder
        if not number % _AT_ONCE:
            yield from world.spend(lines=4 * _AT_ONCE)
    return children
