"""List the changes of the Kubernetes API types between two versions, as Markdown.

    python -m tools.next_minor v0.36.3 v0.37.2 [--module k8s.io/api ...] [--only core/v1 ...] >changes.md

The types are read as text from the Go modules, which `go mod download` fetches. A version of Kubernetes 1.N.P is v0.N.P
of its modules. Listed are group versions and their kinds, types, fields, values of enumerations, and markers.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final, Protocol, TypeVar

from .published import folder_of

MODULES: Final = ("k8s.io/api", "k8s.io/apimachinery")
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")
_LEFT_OUT: Final = re.compile(r"_test\.go$|^zz_generated|^generated|_generated\.go$")
_IRRELEVANT: Final = re.compile(r"-|protobuf|k8s:(deepcopy|conversion|defaulter|openapi-model|protobuf)-gen|structType")
_MARKER: Final = re.compile(r"//\s*\+(.+?)(?:\s+//.*)?")
_TYPE: Final = re.compile(r"type ([A-Z]\w*)(?:\[[^]]*])? (=?) ?(.+)")
_FIELD: Final = re.compile(r"(?:([A-Z]\w*)\s+)?([\w.*\[\]]+(?:\[[^`]*)?)\s*(?:`([^`]*)`)?\s*(?://.*)?")
_TAG: Final = re.compile(r'(\w+):"([^"]*)"')
_VALUE: Final = re.compile(r'(?:const )?[A-Z]\w*\s+([A-Z]\w*)\s*=\s*"([^"]*)"')
_GROUP: Final = re.compile(r'\bGroupName\s*=\s*"([^"]*)"')
_GROUP_VERSION: Final = re.compile(r'GroupVersion\{Group:\s*(GroupName|"[^"]*"),\s*Version:\s*"([^"]+)"')
_KIND: Final = re.compile(r"^\s*&([A-Z]\w*)\{\},", re.MULTILINE)

T = TypeVar("T")


class Described(Protocol):
    """A declaration with markers."""

    @property
    def declared(self) -> str: ...

    @property
    def markers(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Field:
    """A field of a struct."""

    declared: str
    """Its Go type, JSON options and protobuf number."""
    markers: tuple[str, ...]


@dataclass(frozen=True)
class Type:
    """An exported Go type."""

    declared: str
    """`struct`, or the type that it is made of."""
    markers: tuple[str, ...]
    fields: Mapping[str, Field] = field(default_factory=dict)
    """By JSON name; embedded structs without a JSON name by their Go type."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Go type by value, for constants of a type of strings."""


@dataclass(frozen=True)
class Package:
    """A version package of a module, such as core/v1."""

    group_version: str | None
    kinds: frozenset[str]
    types: Mapping[str, Type]


def packages(folder: Path) -> dict[str, Package]:
    """Return the version packages of a module by their path in it, without those for tests."""
    found = {}
    for each in sorted(folder.rglob("v*")):
        if not _VERSION.fullmatch(each.name) or not each.is_dir() or {"testdata", "testapigroup"} & {*each.parts}:
            continue
        sources = [file.read_text() for file in sorted(each.glob("*.go")) if not _LEFT_OUT.search(file.name)]
        package = read_package(sources)
        if package.types:
            found[each.relative_to(folder).as_posix()] = package
    return found


def read_package(sources: Sequence[str]) -> Package:
    """Return the group version, registered kinds and exported types of a package's Go sources."""
    text = "\n".join(sources)
    group, version = _GROUP.search(text), _GROUP_VERSION.search(text)
    group_version = None
    if version is not None:
        name = group[1] if version[1] == "GroupName" and group else version[1].strip('"')
        group_version = f"{name}/{version[2]}" if name else version[2]
    values: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if value := _VALUE.match(line.strip()):
            values.setdefault(value[1], {})[value[2]] = value[1]
    types = {
        name: Type(each.declared, each.markers, each.fields, values.get(name, {}))
        for source in sources
        for name, each in _types(source)
    }
    return Package(group_version, frozenset(_KIND.findall(text)), types)


def _types(source: str) -> Iterator[tuple[str, Type]]:
    """Yield the exported types of a Go file. Markers may stand one empty line above the comment, as gengo reads them."""
    lines = iter(re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL).splitlines())
    comments: list[str] = []
    """Lines of comments and the empty line between two comments."""
    for line in lines:
        if line.startswith("//") or (not line.strip() and comments and comments[-1] and "" not in comments):
            comments.append(line.strip())
            continue
        if match := _TYPE.match(line):
            name, alias, declared = match[1], match[2], match[3].partition("//")[0].strip()
            markers = _markers(comments)
            if re.fullmatch(r"struct ?\{", declared):
                yield name, Type("struct", markers, dict(_fields(lines)))
            elif declared.endswith("{"):
                for inner in lines:
                    if inner.startswith("}"):
                        break
            else:
                yield name, Type(f"{'alias of ' if alias else ''}{declared}", markers)
        comments = [] if line.strip() else [each for each in comments if not each]


def _fields(lines: Iterator[str]) -> Iterator[tuple[str, Field]]:
    """Yield the exported fields of a struct by JSON name, up to its closing brace."""
    comments: list[str] = []
    for line in lines:
        if line.startswith("}"):
            return
        bare = line.strip()
        if bare.startswith("//"):
            comments.append(bare)
            continue
        if (match := _FIELD.fullmatch(bare)) and (match[1] or re.search(r"(^|\.|\*)[A-Z]", match[2])):
            tags = dict(_TAG.findall(match[3] or ""))
            name, *options = tags.get("json", "").split(",")
            number = re.match(r"\w+,(\d+)", tags.get("protobuf", ""))
            words = [match[2], *(each for each in options if each not in ("", "inline"))]
            words += [f"protobuf {number[1]}"] if number else []
            if name != "-":
                yield name or match[1] or match[2], Field(", ".join(words), _markers(comments))
        comments = []


def _markers(comments: Iterable[str]) -> tuple[str, ...]:
    """Return the markers in lines of comments, without those that concern only code generators."""
    found = (_MARKER.fullmatch(each) for each in comments)
    return tuple(sorted({each[1].rstrip() for each in found if each and not _IRRELEVANT.match(each[1])}))


def report(old: Mapping[str, Package], new: Mapping[str, Package]) -> Iterator[str]:
    """Yield the changes from `old` to `new` as lines of Markdown, package by package."""
    yield from _group_versions(old, new)
    for name in sorted({*old, *new}):
        changes = list(_package(old.get(name, Package(None, frozenset(), {})), new.get(name)))
        if changes:
            yield from ("", f"## {name}", "", *changes)


def _group_versions(old: Mapping[str, Package], new: Mapping[str, Package]) -> Iterator[str]:
    """Yield the added and removed group versions, and kinds of other group versions."""
    before = {each.group_version: each.kinds for each in old.values() if each.group_version}
    after = {each.group_version: each.kinds for each in new.values() if each.group_version}
    lines = []
    for name in sorted({*before, *after}):
        added = sorted(after.get(name, frozenset()) - before.get(name, frozenset()))
        removed = sorted(before.get(name, frozenset()) - after.get(name, frozenset()))
        if name not in before:
            lines.append(f"- **added** `{name}`: {_codes(added)}")
        elif name not in after:
            lines.append(f"- **removed** `{name}`: {_codes(removed)}")
        else:
            lines += [f"- added to `{name}`: {_codes(added)}"] if added else []
            lines += [f"- removed from `{name}`: {_codes(removed)}"] if removed else []
    yield from ("## Group versions and kinds", "", *(lines or ["None were added or removed."]))


def _package(old: Package, new: Package | None) -> Iterator[str]:
    """Yield the changes of the types of a package; `new` is None if the package is gone."""
    if new is None:
        yield f"The package is gone, with {len(old.types)} types."
        return
    added, removed, both = _parts(old.types, new.types)
    for name, each in added:
        yield f"- **added** `{name}`: {_described(each)}"
        yield from (f"    - `{inner}`: {_described(member)}" for inner, member in each.fields.items())
        if each.values:
            yield f"    - values: {_codes(each.values)}"
    for name, each in removed:
        yield f"- **removed** `{name}`: {_described(each)}"
    for name, before, after in both:
        lines = list(_type(before, after))
        if lines:
            yield from (f"- `{name}`", *(f"    - {line}" for line in lines))


def _type(old: Type, new: Type) -> Iterator[str]:
    """Yield the changes of a type that both packages have."""
    yield from _changes(old, new)
    added, removed, both = _parts(old.fields, new.fields)
    yield from (f"**added** `{name}`: {_described(each)}" for name, each in added)
    yield from (f"**removed** `{name}`: {_described(each)}" for name, each in removed)
    for name, before, after in both:
        yield from (f"`{name}`: {change}" for change in _changes(before, after))
    if values := [each for each in new.values if each not in old.values]:
        yield f"**added** values: {_codes(values)}"
    if values := [each for each in old.values if each not in new.values]:
        yield f"**removed** values: {_codes(values)}"


def _changes(old: Described, new: Described) -> Iterator[str]:
    """Yield the change of a declaration and of its markers."""
    if old.declared != new.declared:
        yield f"`{old.declared}` became `{new.declared}`"
    if added := [f"+{each}" for each in new.markers if each not in old.markers]:
        yield f"markers added: {_codes(added)}"
    if removed := [f"+{each}" for each in old.markers if each not in new.markers]:
        yield f"markers removed: {_codes(removed)}"


def _parts(
    old: Mapping[str, T], new: Mapping[str, T]
) -> tuple[list[tuple[str, T]], list[tuple[str, T]], list[tuple[str, T, T]]]:
    """Return what only `new` has, what only `old` has, and what both have, by name."""
    added = [(name, each) for name, each in new.items() if name not in old]
    removed = [(name, each) for name, each in old.items() if name not in new]
    return added, removed, [(name, old[name], each) for name, each in new.items() if name in old]


def _described(each: Described) -> str:
    return " ".join([f"`{each.declared}`", *(f"`+{marker}`" for marker in each.markers)])


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the changes between two versions, or exit with the message of `go mod download`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="version of the modules, such as v0.36.3")
    parser.add_argument("new", help="version to compare with it")
    parser.add_argument("--module", action="append", help=f"Go module; by default {' and '.join(MODULES)}")
    parser.add_argument("--only", action="append", help="package to list, such as core/v1; by default all")
    options = parser.parse_args(arguments)
    versions: list[dict[str, Package]] = []
    for version in (options.old, options.new):
        try:
            modules = [packages(folder_of(f"{module}@{version}")) for module in options.module or MODULES]
        except subprocess.CalledProcessError as error:
            sys.exit(f"go mod download failed for {version}: {error.stdout or error.stderr}")
        found = dict(chain.from_iterable(module.items() for module in modules))
        versions.append({name: each for name, each in found.items() if not options.only or name in options.only})
    print(f"# From {options.old} to {options.new}\n")
    print("\n".join(report(*versions)))


if __name__ == "__main__":
    main()
