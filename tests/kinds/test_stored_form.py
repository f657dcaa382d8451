"""Conversion between stored bytes of any form and values."""

from __future__ import annotations

import json

import pytest

from steersman.api.core.v1 import ConfigMap
from steersman.api.meta.v1 import ObjectMeta
from steersman.controlplane import on_request
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS
from steersman.controlplane.stored_forms import stored_form
from steersman.kinds.built_in import built_in
from steersman.kinds.stored_form import JSON, YAML, NotAnObject, StoredForm
from steersman.machinery.codec.protobuf.documents import MEDIA_TYPE as PROTOBUF
from steersman.machinery.identity.schema import GroupVersionKind
from tools.differential.case import named
from tools.differential.objects import Sample, every_sample

MAPS = built_in(ConfigMap)
RESOURCES = [
    resource
    for resource in (*on_request.kube_api(lambda *_: True), *AGGREGATOR, *API_EXTENSIONS)
    if "create" in resource.verbs and "get" in resource.verbs
]


def form(media_type: str) -> StoredForm:
    return StoredForm(MAPS, media_type, find=lambda _: None)


@pytest.mark.parametrize("media_type", [JSON, PROTOBUF, YAML])
@pytest.mark.parametrize("sample", every_sample(), ids=lambda each: f"{each.api_version}-{each.body['kind']}")
def test_every_kind_is_read_in_any_form_as_it_was_stored(sample: Sample, media_type: str) -> None:
    resource = sample.resource
    own, found = stored_form(resource, JSON), stored_form(resource, media_type)
    assert own is not None
    assert found is not None
    value = own.value(json.dumps(named(sample.body, "a", "b"), separators=(",", ":")).encode())
    assert value.startswith(resource.kind.prefix)
    stored = found.stored(value)
    assert found.value(stored) == value
    if media_type == PROTOBUF and not resource.always_json:
        assert stored.startswith(b"k8s\0")


def test_a_value_is_stored_as_it_is() -> None:
    value = MAPS.value(ConfigMap(metadata=ObjectMeta(name="a"), data={"a": "<"})) + b"\n"
    assert form(JSON).is_unchanged(value)
    assert form(JSON).stored(value) is value


def test_members_that_nobody_knows_are_left_out_of_what_is_translated() -> None:
    later = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "later": 1}, "data": {"a": "b"}}
    document = json.loads(form(JSON).value(json.dumps(later | {"x": []}).encode()))
    assert document == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"a": "b"}}


def test_another_version_is_converted_and_has_its_defaults() -> None:
    [autoscalers] = [each for each in RESOURCES if each.plural == "horizontalpodautoscalers"]
    found = stored_form(autoscalers, JSON)
    assert found is not None
    old = {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"kind": "D", "name": "d"}, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
    }
    value = json.loads(found.value(json.dumps(old).encode()))
    assert value["apiVersion"] == "autoscaling/v2"
    assert value["spec"]["minReplicas"] == 1
    assert value["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


def test_a_definition_of_v1beta1_has_what_is_above_its_versions_in_each() -> None:
    [definitions] = [each for each in RESOURCES if each.plural == "customresourcedefinitions"]
    found = stored_form(definitions, JSON)
    assert found is not None
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": "example.com",
        "version": "v1",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "validation": schema,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "A", "type": "date", "JSONPath": ".a"}],
        "versions": [{"name": "v1", "served": True, "storage": True}, {"name": "v2", "served": True, "storage": False}],
    }
    old = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1", "metadata": {"name": "a"}}
    value = found.value(json.dumps({**old, "spec": spec}).encode())
    made = json.loads(value)["spec"]
    assert made["preserveUnknownFields"] is True
    assert made["scope"] == "Namespaced"
    for version in made["versions"]:
        assert version["schema"] == schema
        assert version["subresources"] == {"status": {}}
        assert version["additionalPrinterColumns"] == [{"name": "A", "type": "date", "jsonPath": ".a"}]
    again = json.loads(found.stored(value))
    assert again["spec"]["validation"] == schema
    assert "schema" not in again["spec"]["versions"][0]


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (b"spoilt", "it is no object"),
        (b"{", "parse error"),
        (b"{}", "it is of no version, no kind"),
        (b'{"kind":"Secret","apiVersion":"v1"}', "it is of v1, Secret"),
        (b'{"kind":"ConfigMap","apiVersion":"v2"}', "it is of v2, ConfigMap"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\n\x0f\n\x02v1\x12\x09ConfigMap\x12\x05\n", "unexpected EOF"),
    ],
)
def test_what_is_no_object_of_the_kind_is_told(stored: bytes, why: str) -> None:
    with pytest.raises(NotAnObject, match=why):
        form(JSON).value(stored)


def test_the_envelope_of_protobuf_names_the_kind() -> None:
    stored = form(PROTOBUF).stored(MAPS.value(ConfigMap(metadata=ObjectMeta(name="a"))))
    assert stored.startswith(b"k8s\0\n\x0f\n\x02v1\x12\x09ConfigMap\x12")
    assert stored.endswith(b"\x1a\0\x22\0")
    assert MAPS.gvk == GroupVersionKind("", "v1", "ConfigMap")
