"""`--runtime-config`: the served group versions, and the served resources in them.

Follows k8s.io/apiserver `server/resourceconfig` and `server/options` (APIEnablementOptions), errors included. A
disabled group version looks as if it did not exist: it is not in discovery, has no APIService, and is answered with
404. Its stored objects stay, and other versions of the kind show them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from steersman.controlplane.group_versions import GROUP_VERSIONS, WITHOUT_RESOURCES
from steersman.controlplane.options import OptionsError
from steersman.machinery.go.strings import to_lower
from steersman.machinery.suggestions import known_names_hint
from steersman.work.patterns import late_pattern

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True", ""})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_GA: Final = late_pattern(r"v\d+", re.ASCII)
_LEVELS: Final = {
    "api/all": late_pattern(r".*"),
    "api/ga": _GA,
    "api/beta": late_pattern(r"v\d+beta\d+", re.ASCII),
    "api/alpha": late_pattern(r"v\d+alpha\d+", re.ASCII),
}
"""Keys for classes of versions; later ones take precedence."""


class RuntimeConfig:
    """The parsed flag. Raises OptionsError for a value that upstream refuses."""

    def __init__(self, pairs: Mapping[str, str]) -> None:
        if dict(pairs) == {"api/all": "false"}:
            raise OptionsError("invalid runtime-config with only api/all=false")
        values = {_core(key): value for key, value in pairs.items() if key != "api/legacy"}
        _check_groups(values)
        self._versions = {(each.group, each.version): bool(_GA.fullmatch(each.version)) for each in GROUP_VERSIONS}
        self._resources: dict[tuple[str, str, str], bool] = {}
        for level, pattern in _LEVELS.items():
            if level in values:
                served = _strictly_boolean(level, values.pop(level))
                self._versions.update({key: served for key in self._versions if pattern.fullmatch(key[1])})
        registered = {each.name for each in GROUP_VERSIONS} | WITHOUT_RESOURCES
        for key, value in values.items():
            group, version, *resource = key.split("/")
            if (f"{group}/{version}" if group else version) not in registered:
                meant = known_names_hint(f"{group}/{version}", registered)
                raise OptionsError(f"group version {group}/{version} that has not been registered{meant}")
            served = _boolean(key, value)
            if not resource:
                if (group, version) in self._versions:
                    self._versions[group, version] = served
            elif resource[0] != to_lower(resource[0]):
                raise OptionsError(
                    f"invalid key {key}: group/version/resource and resource is always lowercase plural, "
                    f'not "{resource[0]}"'
                )
            else:
                self._resources[group, version, resource[0]] = served

    def serves(self, group: str, version: str, resource: str) -> bool:
        """Return True if a resource, if it exists, is served in a version of a group."""
        setting = self._resources.get((group, version, resource))
        return self._versions.get((group, version), False) if setting is None else setting

    @property
    def beyond_default(self) -> bool:
        """True if anything may be served that is off by default."""
        versions = {key[:2] for key, served in self._resources.items() if served}
        versions |= {key for key, served in self._versions.items() if served}
        return any(not _GA.fullmatch(version) for _, version in versions)


def _core(key: str) -> str:
    """Return the key of the core group's version in one spelling; any other key stays as it is."""
    short = key.removeprefix("api/")
    return "/v1" if short == "v1" or short.startswith("v1/") else key


def _check_groups(values: Mapping[str, str]) -> None:
    groups = {each.group for each in GROUP_VERSIONS} | {each.partition("/")[0] for each in WITHOUT_RESOURCES}
    unknown = set()
    for key in values:
        if key in _LEVELS:
            continue
        parts = key.split("/")
        if len(parts) not in (2, 3):
            raise OptionsError(f"runtime-config invalid key {key}")
        if parts[0] not in groups:
            unknown.add(f"{parts[0]}/{parts[1]}")
    if unknown:
        meant = known_names_hint(min(unknown).partition("/")[0], groups - {""})
        raise OptionsError(f"unknown api groups {','.join(sorted(unknown))}{meant}")


def _strictly_boolean(key: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise OptionsError(f"invalid value {key}={value}")
    return value == "true"


def _boolean(key: str, value: str) -> bool:
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise OptionsError(f'invalid value of {key}: {value}, err: strconv.ParseBool: parsing "{value}": invalid syntax')
