"""Changes of custom resources that obey transition rules, which compare the new object with the old one (`oldSelf`)."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Final

from hypothesis.strategies import DrawFn

from .errors import StrategyError
from .judges import CustomJudge
from .objects import Objects
from .sources import custom_source

Body = dict[str, Any]

_OLD: Final = "oldSelf"


class Changes:
    """Transition rules of definitions, by API version and kind of their objects."""

    def __init__(self, definitions: Iterable[Body]) -> None:
        self._versions: dict[tuple[str, str], tuple[Body, str]] = {}
        self._objects: dict[tuple[str, str], Objects | None] = {}
        for each in definitions:
            spec = each["spec"]
            for version in spec["versions"]:
                if _OLD in str(version.get("schema")):
                    key = f"{spec['group']}/{version['name']}", str(spec["names"]["kind"])
                    self._versions[key] = each, str(version["name"])

    def obeying(self, draw: DrawFn, new: Body, old: Body) -> Body:
        """Return `new`, changed such that it may replace `old`. It is `old` itself if nothing else is found."""
        objects = self._of(str(new["apiVersion"]), str(new["kind"]))
        if objects is None:
            return new
        return objects.changed(draw, deepcopy(new), old) or old

    def _of(self, api_version: str, kind: str) -> Objects | None:
        """Return the objects of a kind; None without transition rules, or if the schema has no values within bounds."""
        key = (api_version, kind)
        if key not in self._objects:
            self._objects[key] = self._made(*self._versions[key]) if key in self._versions else None
        return self._objects[key]

    def _made(self, definition: Body, version: str) -> Objects | None:
        try:
            source = custom_source(definition, version=version)
            return Objects(source, CustomJudge(source.structural, source.declared), "")
        except StrategyError:
            return None  # such objects are not drawn by `custom_resources`; changes of others stay as they are
