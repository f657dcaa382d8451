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
    """Client of a server with a bearer token; `authority` is the text of certificates in PEM."""

    def __init__(self, server: str, authority: str, token: str, agent: str = "copier") -> None:
        self._server = server
        self._context = ssl.create_default_context(cadata=authority)
        self._token = token
        self._agent = agent

    @classmethod
    def of(cls, kubeconfig: Path, agent: str = "copier") -> Api:
        """Return a client with the credentials of a kubeconfig in JSON."""
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cls(cluster["server"], authority, config["users"][0]["user"]["token"], agent)

    def open(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """Return the open answer. Raises urllib.error.HTTPError, OSError."""
        data = None if body is None else json.dumps(body).encode()
        fields = {"Authorization": f"Bearer {self._token}", "Content-Type": media, "User-Agent": f"{self._agent}/1.0"}
        request = urllib.request.Request(self._server + path, data, fields, method=method)
        return urllib.request.urlopen(request, context=self._context, timeout=60)

    def request(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """Return the answer's object. Raises urllib.error.HTTPError, OSError."""
        with self.open(method, path, body, media) as answer:
            return json.load(answer)

    def is_ready(self) -> bool:
        """Return True once the server is ready."""
        try:
            with self.open("GET", "/readyz"):
                return True
        except OSError:
            return False

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


def work(api: Api, *, careless: bool) -> None:
    """Copy until the process ends."""
    while True:
        try:
            for name in names(api):
                reconcile(api, name, careless=careless)
        except OSError as error:
            print(f"again after: {error}", flush=True)


if __name__ == "__main__":
    work(Api.of(Path(os.environ["KUBECONFIG"])), careless="--careless" in sys.argv)
