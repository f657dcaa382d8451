"""Objects of the guides that no command creates: a server accepts each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.controlplane.tracing_configuration import tracing_configuration
from tests.docs.markdown_documents import ROOT, Document

PATHS = {
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "Service": "/api/v1/namespaces/default/services",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}
OTHERS = {"Order"}
"""Kinds that the server of the guide itself serves."""


@pytest.mark.parametrize("name", ["webhooks.md", "aggregation.md"])
async def test_a_server_accepts_the_objects_of_a_guide(api: Any, name: str) -> None:
    accepted = 0
    for block in Document(ROOT / "docs" / name).blocks("yaml"):
        for body in yaml.safe_load_all(re.sub("CA_BUNDLE", '""', block)):
            if body["kind"] not in OTHERS:
                answer = await api.post(f"{PATHS[body['kind']]}?dryRun=All&fieldValidation=Strict", body)
                assert answer.status == 201, answer.body
                accepted += 1
    assert accepted >= 2


def test_the_tracing_configuration_of_the_guide_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "tracing.yaml"
    (block,) = Document(ROOT / "docs" / "trace.md").blocks("yaml")
    file.write_text(block)
    found = tracing_configuration(str(file))
    assert (found.endpoint, found.sampling_rate_per_million) == ("localhost:4317", 10_000)
