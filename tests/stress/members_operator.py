"""Operator that keeps the names of members in a ConfigMap.

It removes a name at the event of a deletion, and no event tells of a deletion between the end of a watch and the next
list, as in Bottlerocket's: https://github.com/bottlerocket-os/bottlerocket-update-operator/issues/106.
With `--fixed` a list replaces all names.
"""

from __future__ import annotations

import sys
import urllib.error
from typing import Any

from tests.stress.copying_operator import Api
from tests.stress.small_operator import CONFIG_MAPS, MERGE, api_for, follow, retried

REGISTER = "register"


class Members:
    """Register of members; both are ConfigMaps."""

    def __init__(self, api: Api, *, is_fixed: bool) -> None:
        self._api = api
        self._is_fixed = is_fixed

    def receive(self, kind: str, found: Any) -> None:
        """Follow members."""
        if kind == "SYNC":
            retried(lambda: self._add_all([each["metadata"]["name"] for each in found]))
        else:
            name = found["metadata"]["name"]
            retried(lambda: self._write({name: None if kind == "DELETED" else "member"}))

    def _add_all(self, names: list[str]) -> None:
        gone: dict[str, str | None] = {}
        if self._is_fixed:
            gone = dict.fromkeys((self._api.find(f"{CONFIG_MAPS}/{REGISTER}") or {}).get("data") or {})
        self._write({**gone, **dict.fromkeys(names, "member")})

    def _write(self, data: dict[str, str | None]) -> None:
        try:
            self._api.request("PATCH", f"{CONFIG_MAPS}/{REGISTER}", {"data": data}, MERGE)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            self._api.request("POST", CONFIG_MAPS, {"metadata": {"name": REGISTER}})
            self._write(data)


if __name__ == "__main__":
    api = api_for("members")
    follow(api, "member", Members(api, is_fixed="--fixed" in sys.argv).receive)
