"""Test beside the operator of tests: makes a ConfigMap, and waits until its Secret has a token."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.stress.copying_operator import NAMESPACE, Api


def main() -> None:
    """Make a ConfigMap, and wait for its Secret; fail after five seconds."""
    api = Api.of(Path(os.environ["KUBECONFIG"]))
    api.request("POST", f"{NAMESPACE}/configmaps", {"metadata": {"name": "a", "labels": {"copy": ""}}})
    until = time.monotonic() + 5
    while api.find(f"{NAMESPACE}/secrets/a") is None:
        if time.monotonic() > until:
            sys.exit("no Secret")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
