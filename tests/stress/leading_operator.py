"""Operator that does nothing but lead: it renews its lock, an annotation of a ConfigMap, again and again."""

from __future__ import annotations

import json
import time

from tests.stress.small_operator import CONFIG_MAPS, MERGE, api_for

LEADER = "control-plane.alpha.kubernetes.io/leader"
_PERIOD = 0.4

if __name__ == "__main__":
    api = api_for("leading")
    api.request("POST", CONFIG_MAPS, {"metadata": {"name": "lock", "annotations": {LEADER: "{}"}}})
    while True:
        lock = {"holderIdentity": "me", "renewTime": str(time.time())}
        api.request("PATCH", f"{CONFIG_MAPS}/lock", {"metadata": {"annotations": {LEADER: json.dumps(lock)}}}, MERGE)
        time.sleep(_PERIOD)
