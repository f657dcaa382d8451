"""Operator that makes one request for each certificate, as cert-manager does.

An answer that is lost after the request was made leads to a second request for the same certificate, as the server
chooses the names. Neither is carried out then: https://github.com/cert-manager/cert-manager/issues/4956.
With `--fixed` the name follows from that of the certificate: https://github.com/cert-manager/cert-manager/pull/5487.
"""

from __future__ import annotations

import sys
import urllib.error
from typing import Any

from tests.stress.copying_operator import Api
from tests.stress.small_operator import CONFIG_MAPS, MERGE, api_for, exists_already, follow, objects, retried


class Requests:
    """Requests for certificates; both are ConfigMaps."""

    def __init__(self, api: Api, *, is_fixed: bool) -> None:
        self._api = api
        self._is_fixed = is_fixed

    def receive(self, kind: str, found: Any) -> None:
        """Carry out what certificates need."""
        for each in objects(kind, found):
            retried(lambda name=each["metadata"]["name"]: self._reconcile(name))  # type: ignore[misc]

    def _reconcile(self, certificate: str) -> None:
        found = self._api.request("GET", f"{CONFIG_MAPS}?labelSelector=request={certificate}")["items"]
        if not found:
            self._make(certificate)
        elif len(found) > 1:
            print(f"multiple requests for {certificate}, which waits until there is one", flush=True)
        elif (found[0].get("data") or {}).get("state") != "issued":
            issued = {"data": {"state": "issued"}}
            self._api.request("PATCH", f"{CONFIG_MAPS}/{found[0]['metadata']['name']}", issued, MERGE)

    def _make(self, certificate: str) -> None:
        labels = {"request": certificate}
        if not self._is_fixed:
            made = {"metadata": {"generateName": f"{certificate}-", "labels": labels}}
            retried(lambda: self._api.request("POST", CONFIG_MAPS, made) and None)
        else:
            made = {"metadata": {"name": f"{certificate}-1", "labels": labels}}
            retried(lambda: self._make_named(made))
        self._reconcile(certificate)

    def _make_named(self, made: Any) -> None:
        try:
            self._api.request("POST", CONFIG_MAPS, made)
        except urllib.error.HTTPError as error:
            if not exists_already(error):
                raise


if __name__ == "__main__":
    api = api_for("requests")
    follow(api, "certificate", Requests(api, is_fixed="--fixed" in sys.argv).receive)
