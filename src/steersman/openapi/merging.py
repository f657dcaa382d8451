"""Merging of another server's v2 document: restricted to its group version, with conflicting names changed.

Follows k8s.io/kube-openapi `pkg/aggregator` (FilterSpecByPaths, MergeSpecs and related functions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from steersman.machinery.codec.serializer import decode_plain, encode
from steersman.openapi.fragments import Fragments, merged
from steersman.openapi.sources import Tree
from steersman.work.threads import give_way

_PREFIXES: Final = {"definitions": "#/definitions/", "parameters": "#/parameters/"}
_GVK: Final = "x-kubernetes-group-version-kind"


def below(document: Tree, prefix: str) -> Tree:
    """Return a document with only the paths of this prefix, without the definitions that only other paths use."""
    paths = document.get("paths")
    if not isinstance(paths, dict):
        return {**document, "paths": {}, "definitions": {}}
    kept = {path: item for path, item in paths.items() if path.startswith(prefix)}
    definitions = document.get("definitions")
    definitions = definitions if isinstance(definitions, dict) else {}
    before, now = _used(paths, definitions), _used(kept, definitions)
    found = {name: each for name, each in definitions.items() if name in now or name not in before}
    return {**document, "paths": kept, "definitions": found}


def merge_document(whole: Fragments, document: Tree) -> Fragments:
    """Return the union of both; if both have a path, that of `whole` is taken."""
    paths = {path: item for path, item in document.get("paths", {}).items() if path not in whole.paths}
    if not paths:
        return whole
    renames: dict[str, str] = {}
    for section, prefix in _PREFIXES.items():
        members = document.get(section, {})
        found = _renames(getattr(whole, section), members, modulo_kind=section == "definitions")
        renames |= {f"{prefix}{name}": f"{prefix}{new}" for name, new in found.items()}
    parts: dict[str, dict[str, bytes]] = {"paths": _encoded(paths, renames, "")}
    for section, prefix in _PREFIXES.items():
        parts[section] = _encoded(document.get(section, {}), renames, prefix)
    return merged((whole, Fragments(**parts)))


def _encoded(members: Tree, renames: Mapping[str, str], prefix: str) -> dict[str, bytes]:
    found = {}
    for name, member in members.items():
        give_way()
        key = renames.get(f"{prefix}{name}", f"{prefix}{name}").removeprefix(prefix)
        found[key] = encode(_renamed(member, renames) if renames else member)
    return found


def _renames(taken: Mapping[str, bytes], members: Tree, *, modulo_kind: bool) -> dict[str, str]:
    """Return new names for the members that differ from present members of the same name."""
    renames: dict[str, str] = {}
    used = set(taken)
    for name in sorted(members):
        give_way()
        if name not in taken or _is_same(taken[name], members[name], modulo_kind=modulo_kind):
            continue
        number = 2
        while (new := f"{name}_v{number}") in used or new in members:
            if new in taken and _is_same(taken[new], members[name], modulo_kind=modulo_kind):
                break
            number += 1
        renames[name] = new
        used.add(new)
    return renames


def _is_same(one: bytes, other: Any, *, modulo_kind: bool) -> bool:
    """Return True if both are equal, apart from descriptions."""
    there = decode_plain(one)
    if modulo_kind and isinstance(there, dict) and isinstance(other, dict):
        there, other = ({key: value for key, value in each.items() if key != _GVK} for each in (there, other))
    return bool(there == other) or _without_texts(there) == _without_texts(other)


def _without_texts(value: Any) -> Any:
    """Return a schema or parameter without descriptions. A property called "description" is not text and stays."""
    if isinstance(value, dict):
        return {
            key: _without_texts(each)
            for key, each in value.items()
            if key != "description" or not isinstance(each, str)
        }
    if isinstance(value, list):
        return [_without_texts(each) for each in value]
    return value


def _used(paths: Tree, definitions: Tree) -> set[str]:
    """Return the names of the definitions to which paths refer, directly or through other definitions."""
    found: set[str] = set()
    waiting: list[Any] = [paths]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in found:
                found.add(name)
                if name in definitions:
                    waiting.append(definitions[name])
    return found


def _references(value: Any) -> Iterator[str]:
    prefix = _PREFIXES["definitions"]
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            give_way()
            reference = each.get("$ref")
            if isinstance(reference, str) and reference.startswith(prefix):
                yield reference.removeprefix(prefix)
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _renamed(value: Any, renames: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: renames.get(each, each) if key == "$ref" and isinstance(each, str) else _renamed(each, renames)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_renamed(each, renames) for each in value]
    return value
