"""Operator that makes one head for each cluster, as KubeRay does.

It looks for heads in a cache. If that is behind, a change of the cluster leads to a second head, and workers connect to
either: https://github.com/ray-project/kuberay/issues/715. With `--fixed` the server refuses the second one, as the name
of the head follows from that of the cluster: https://github.com/ray-project/kuberay/issues/3013.
"""

from __future__ import annotations

import sys
import threading
import urllib.error
from typing import Any

from tests.stress.copying_operator import Api
from tests.stress.small_operator import CONFIG_MAPS, api_for, exists_already, follow, objects, retried


class Heads:
    """Heads of clusters, with a cache of them; both are ConfigMaps."""

    def __init__(self, api: Api, *, is_fixed: bool) -> None:
        self._api = api
        self._is_fixed = is_fixed
        self._known: set[str] = set()
        """Clusters that have a head as far as the cache knows."""
        self.are_listed = threading.Event()

    def receive_head(self, kind: str, found: Any) -> None:
        """Follow heads."""
        if kind == "SYNC":
            self._known = {each["metadata"]["labels"]["head"] for each in found}
            self.are_listed.set()
        elif kind == "DELETED":
            self._known.discard(found["metadata"]["labels"]["head"])
        else:
            self._known.add(found["metadata"]["labels"]["head"])

    def receive_cluster(self, kind: str, found: Any) -> None:
        """Make the heads of clusters."""
        for each in objects(kind, found):
            retried(lambda name=each["metadata"]["name"]: self._reconcile(name))  # type: ignore[misc]

    def _reconcile(self, cluster: str) -> None:
        if cluster in self._known:
            return
        name = {"name": f"{cluster}-head"} if self._is_fixed else {"generateName": f"{cluster}-head-"}
        try:
            self._api.request("POST", CONFIG_MAPS, {"metadata": {**name, "labels": {"head": cluster}}})
        except urllib.error.HTTPError as error:
            if not exists_already(error):
                raise


if __name__ == "__main__":
    api = api_for("heads")
    heads = Heads(api, is_fixed="--fixed" in sys.argv)
    threading.Thread(target=follow, args=(api_for("heads"), "head", heads.receive_head), daemon=True).start()
    heads.are_listed.wait()
    follow(api, "cluster", heads.receive_cluster)
