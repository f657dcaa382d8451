"""Test that queries with every option on every verb are answered as by a recorded kube-apiserver.

`python -m tools.differential.recording` makes the recording anew.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tools.differential.recording import answers, prepare
from tools.differential.server import Server

RECORDED = Path(__file__).with_name("recorded_queries.json")


@pytest.mark.slow
def test_queries_are_answered_as_recorded() -> None:
    serve = shlex.join([sys.executable, str(ROOT / "bench" / "serve"), "--allow-privileged"])
    with Server(serve) as client:
        prepare(client)
        for number, recorded in enumerate(json.loads(RECORDED.read_text())):
            assert list(answers(client, "queries", number)) == recorded
