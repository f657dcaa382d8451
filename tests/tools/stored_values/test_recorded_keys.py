"""Test that this server stores its values under the same keys and in the same forms as a recorded kube-apiserver.

`python -m tools.stored_values --media-type application/vnd.kubernetes.protobuf --keys
tests/tools/stored_values/kube_apiserver_keys.json` records it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.stored_values.comparison import forms
from tools.stored_values.filling import fill
from tools.stored_values.servers import Ours, free_port

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).with_name("kube_apiserver_keys.json")
OTHERWISE: dict[str, tuple[str | None, str | None]] = {
    "/registry/configmaps/kube-system/extension-apiserver-authentication": (None, "protobuf"),
    "/registry/masterleases/192.0.2.1": ("protobuf", "JSON"),
    "/registry/peerserverleases/IDENTITY": ("protobuf", None),
    "/registry/ranges/servicenodeports": ("protobuf", "JSON"),
}
"""Known differences: the forms in kube-apiserver and in this server, None where nothing is stored."""


def test_keys_and_forms_are_those_of_kube_apiserver(tmp_path: Path) -> None:
    theirs = json.loads(RECORDED.read_text())
    with Ours(tmp_path / "ours", free_port(), ["--storage-media-type=application/vnd.kubernetes.protobuf"]) as server:
        assert list(fill(server.client, on_request=False)) == []
        ours = forms(server.contents())
    different = {
        key: (theirs.get(key), ours.get(key)) for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)
    }
    assert different == OTHERWISE
