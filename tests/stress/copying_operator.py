"""Operator of tests: for each ConfigMap with the label `copy` it makes a Secret of that name, then a token in it.

With `--careless` it does not finish an object that it finds half made: a crash between its two writes is never repaired.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMESPACE = "/api/v1/namespaces/default"


class Api:
    """Client with the credentials of a kubeconfig in JSON."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._server = cluster["server"]
        self._context = ssl.create_default_context(cadata=authority)
        self._token = config["users"][0]["user"]["token"]

    def open(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """Return the open answer. Raises urllib.error.HTTPError, OSError."""
        data = None if body is None else json.dumps(body).encode()
        fields = {"Authorization": f"Bearer {self._token}", "Content-Type": media, "User-Agent": "copier/1.0"}
        request = urllib.request.Request(self._server + path, data, fields, method=method)
        return urllib.request.urlopen(request, context=self._context, timeout=60)

    def request(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """Return the answer's object. Raises urllib.error.HTTPError, OSError."""
        with self.open(method, path, body, media) as answer:
            return json.load(answer)

    def find(self, path: str) -> Any:
        """Return an object, None if there is none. Raises urllib.error.HTTPError, OSError."""
        try:
            return self.request("GET", path)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None


def reconcile(api: Api, name: str, *, careless: bool) -> None:
    """Make the Secret of a ConfigMap."""
    path = f"{NAMESPACE}/secrets"
    secret = api.find(f"{path}/{name}")
    if secret is not None and (careless or "token" in (secret.get("data") or {})):
        return
    if secret is None:
        api.request("POST", path, {"metadata": {"name": name}})
    patch = {"stringData": {"token": "secret"}}
    api.request("PATCH", f"{path}/{name}", patch, "application/merge-patch+json")


def names(api: Api) -> Iterator[str]:
    """Yield names of ConfigMaps that are there or change, until the watch ends. Raises OSError."""
    target = f"{NAMESPACE}/configmaps?labelSelector=copy"
    found = api.request("GET", target)
    for each in found["items"]:
        yield each["metadata"]["name"]
    version = found["metadata"]["resourceVersion"]
    with api.open("GET", f"{target}&watch=true&resourceVersion={version}") as events:
        for line in events:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            if event["type"] != "DELETED":
                yield event["object"]["metadata"]["name"]


def main(kubeconfig: str, *flags: str) -> None:
    """Copy until it is killed."""
    api = Api(Path(kubeconfig))
    while True:
        try:
            for name in names(api):
                reconcile(api, name, careless="--careless" in flags)
        except OSError as error:
            print(f"again after: {error}", flush=True)


if __name__ == "__main__":
    main(os.environ["KUBECONFIG"], *sys.argv[1:])
