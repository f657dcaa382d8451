"""`--runtime-config`: which group versions, and which resources in them, are served.

Follows k8s.io/apiserver `server/resourceconfig` for what is served by default. A group version that is off is as one
that was never there: not in discovery, no APIService, 404. What is stored stays, and other versions of a kind show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.controlplane.group_versions import GROUP_VERSIONS
from steersman.controlplane.options import OptionsError

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True", ""})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_WHOLE: Final = ("api/all", "api/ga")
"""Keys about every version served, the later one counts more."""
_NOTHING: Final = frozenset({"api/beta", "api/alpha", "api/legacy"})
"""Keys about versions of which none is there."""


class RuntimeConfig:
    """The parsed flag. Raises OptionsError for what is unknown, and for what is asked for and is not there."""

    def __init__(self, pairs: Mapping[str, str]) -> None:
        values = {key: _boolean(key, value) for key, value in pairs.items()}
        served = {_key(each.group, each.version) for each in GROUP_VERSIONS}
        groups = {each.group for each in GROUP_VERSIONS}
        self._versions: dict[str, bool] = {}
        self._resources: dict[str, bool] = {}
        self._default = True
        for key in _WHOLE:
            self._default = values.pop(key, self._default)
        for key, value in values.items():
            name = key.removeprefix("api/") if key.count("/") == 1 and key.removeprefix("api/") in served else key
            version, _, resource = name.rpartition("/") if name.count("/") == 2 else (name, "", "")
            if name not in _NOTHING and version.partition("/")[0] not in groups and version not in served:
                raise OptionsError(f"unknown api groups {version}")
            if version not in served and value and name != "api/legacy":
                raise OptionsError(f"not supported yet: --runtime-config={key}={pairs[key]}")
            if resource:
                self._resources[name] = value
            else:
                self._versions[version] = value

    def serves(self, group: str, version: str, resource: str) -> bool:
        """Whether a resource is served in a version of a group."""
        key = _key(group, version)
        return self._resources.get(f"{key}/{resource}", self._versions.get(key, self._default))

    def group_versions(self) -> list[tuple[str, str]]:
        """The group versions that are served, by priority."""
        return [
            (each.group, each.version)
            for each in GROUP_VERSIONS
            if self._versions.get(_key(each.group, each.version), self._default)
        ]


def _key(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _boolean(key: str, value: str) -> bool:
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise OptionsError(f"invalid value {key}={value} in --runtime-config: neither true nor false")
