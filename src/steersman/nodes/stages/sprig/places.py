"""Functions of paths, URLs and versions (sprig `functions.go`, `url.go`, `semver.go`)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from steersman.machinery.go.strings import to_lower
from steersman.machinery.go.urls import UrlError, parse_reference
from steersman.net.ascii import is_digits
from steersman.nodes.stages.go_template.builtins import Function, text
from steersman.nodes.stages.go_template.values import Opaque, TemplateError, Value
from steersman.work.patterns import late_pattern

_MOST_TEXT: Final = 256


def _clean(path: str) -> str:
    """Return the shortest equal path (path.Clean)."""
    if not path:
        return "."
    found = posixpath.normpath(path)
    return found[1:] if found.startswith("//") else found


def _base(path: str) -> str:
    shortened = path.rstrip("/")
    if not path:
        return "."
    return shortened.rpartition("/")[2] if shortened else "/"


def _dir(path: str) -> str:
    return _clean(path[: path.rfind("/") + 1])


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    at = name.rfind(".")
    return name[at:] if at >= 0 else ""


def _of_path(call: Callable[[str], Value], whose: str) -> Function:
    return lambda value: call(text(value, whose))


_PATHS: Final = {
    "Base": _base,
    "Clean": _clean,
    "Dir": _dir,
    "Ext": _extension,
    "IsAbs": lambda path: path.startswith("/"),
}


def _parse_url(value: Value) -> dict[str, Value]:
    given = text(value, "urlParse")
    try:
        found = parse_reference(given)
    except UrlError as error:
        raise TemplateError(f"unable to parse url: {error}") from None
    host = found.host
    name = re.sub(r":[0-9]*\Z", "", host, flags=re.ASCII)
    return {
        "scheme": found.scheme,
        "host": host,
        "hostname": name[1:-1] if name.startswith("[") and name.endswith("]") else name,
        "path": found.path,
        "query": found.query,
        "opaque": "",
        "fragment": found.fragment,
        "userinfo": found.user or "",
    }


def _join_url(value: Value) -> str:
    if not isinstance(value, dict):
        raise TemplateError("urlJoin: wrong type for value; expected map[string]interface {}")

    def part(name: str) -> str:
        return text(value.get(name, ""), f"unable to parse {name} key")

    shown = f"{part('scheme')}:" if part("scheme") else ""
    if part("opaque"):
        shown += part("opaque")
    else:
        user = f"{part('userinfo')}@" if part("userinfo") else ""
        if part("scheme") or part("host") or user:
            shown += f"//{user}{part('host')}" if part("host") or part("path") or user else ""
        path = part("path")
        shown += f"/{path}" if path and part("host") and not path.startswith("/") else path
    query, fragment = part("query"), part("fragment")
    return shown + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")


# Versions

_VERSION: Final = late_pattern(
    r"v?([0-9]{1,18})(?:\.([0-9]{1,18}))?(?:\.([0-9]{1,18}))?(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)
_CONSTRAINT: Final = late_pattern(
    r"(?:(=|!=|>=|=>|<=|=<|>|<|~>|~|\^)[ \t]*)?v?([0-9]{1,18}|[xX*])(?:\.([0-9]{1,18}|[xX*]))?"
    r"(?:\.([0-9]{1,18}|[xX*]))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)
_RANGE: Final = late_pattern(r"(?<![^ |,])([^ |,]+) +- +([^ |,]+)", re.ASCII)


class Version(Opaque):
    """Semantic version (semver.Version)."""

    go_type = "*semver.Version"

    def __init__(self, major: int, minor: int, patch: int, pre: str = "", meta: str = "") -> None:
        self.numbers: Final = (major, minor, patch)
        self.pre: Final = pre
        self.meta: Final = meta

    def __str__(self) -> str:
        shown = ".".join(map(str, self.numbers))
        return shown + (f"-{self.pre}" if self.pre else "") + (f"+{self.meta}" if self.meta else "")

    def __bool__(self) -> bool:
        return True

    @property
    def order(self) -> tuple[object, ...]:
        """Key by which versions are ordered; a prerelease comes before its release."""
        parts = [(0, int(each), "") if is_digits(each) else (1, 0, each) for each in self.pre.split(".")]
        return (*self.numbers, not self.pre, parts if self.pre else [])

    def member(self, name: str) -> Value:
        """Return a field as templates read it."""
        major, minor, patch = self.numbers
        known = {"Major": major, "Minor": minor, "Patch": patch, "Prerelease": self.pre, "Metadata": self.meta}
        return {**known, "Original": str(self), "String": str(self)}.get(name)


def _version(value: Value) -> Version:
    given = text(value, "semver")
    match = _VERSION.fullmatch(given) if len(given) <= _MOST_TEXT else None
    if match is None:
        raise TemplateError("invalid semantic version")
    return Version(int(match[1]), int(match[2] or 0), int(match[3] or 0), match[4] or "", match[5] or "")


def _meets(constraint: Value, version: Value) -> bool:
    """Return True if a version meets one of the alternatives of a constraint."""
    given, found = text(constraint, "semverCompare"), _version(version)
    if len(given) > _MOST_TEXT:
        raise TemplateError("improper constraint: too long")
    return any(_meets_all(each, found) for each in given.split("||"))


def _meets_all(given: str, version: Version) -> bool:
    given = _RANGE.sub(r">=\1, <=\2", given)
    at, met, count = 0, True, 0
    while at < len(given):
        if given[at] in ", \t":
            at += 1
            continue
        match = _CONSTRAINT.match(given, at)
        if match is None:
            raise TemplateError(f"improper constraint: {given}")
        met = _meets_one(match, version) and met
        at, count = match.end(), count + 1
    if not count:
        raise TemplateError(f"improper constraint: {given}")
    return met


def _meets_one(match: re.Match[str], version: Version) -> bool:
    operator, parts = match[1] or "", [match[2], match[3], match[4]]
    known = [int(each) for each in parts[: next((at for at, e in enumerate(parts) if not e or e in "xX*"), 3)]]
    major, minor, patch = [*known, 0, 0, 0][:3]
    wanted = Version(major, minor, patch, match[5] or "")
    if version.pre and not wanted.pre:
        return operator == "!=" and version.order != wanted.order
    below = version.order < wanted.order
    prefix = list(version.numbers[: len(known)])
    match operator:
        case "" | "=":
            return version.order == wanted.order if len(known) == 3 else prefix == known
        case "!=":
            return version.order != wanted.order if len(known) == 3 else prefix != known
        case ">":
            return prefix > known if len(known) < 3 else version.order > wanted.order
        case "<":
            return below
        case ">=" | "=>":
            return not below
        case "<=" | "=<":
            return prefix <= known if len(known) < 3 else version.order <= wanted.order
        case "~" | "~>":
            return not below and prefix[:2] == known[:2]
    fixed = next((at + 1 for at, each in enumerate(known) if each), max(len(known), 1))
    return not below and prefix[:fixed] == known[:fixed]


PLACES: Final[Mapping[str, Function]] = MappingProxyType(
    {
        **{to_lower(name[0]) + name[1:]: _of_path(call, name) for name, call in _PATHS.items()},
        **{f"os{name}": _of_path(call, f"os{name}") for name, call in _PATHS.items()},
        "semver": _version,
        "semverCompare": _meets,
        "urlJoin": _join_url,
        "urlParse": _parse_url,
    }
)
