"""Descriptions of types and fields in OpenAPI documents."""

from __future__ import annotations

from typing import Any

from steersman.openapi.descriptions import Descriptions, digest, without_values
from steersman.openapi.schemas import recorded

CORE = "io.k8s.api.core.v1"


def test_types_of_every_kind_of_group_are_found() -> None:
    descriptions = Descriptions()
    for name in (
        f"{CORE}.Pod",
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        "io.k8s.apimachinery.pkg.version.Info",
    ):
        found = descriptions.find(name)
        assert found is not None, name
        assert found.text, name
    assert len(digest()) == 64


def test_unknown_types_have_none() -> None:
    descriptions = Descriptions()
    for name in ("Pod", f"{CORE}.Nothing", "com.example.v1.Kettle", "io.k8s.api.core.../x.Pod"):
        assert descriptions.find(name) is None


def test_schemas_get_descriptions_of_type_and_fields() -> None:
    schemas: dict[str, Any] = {
        "io.k8s.api.networking.v1.IPBlock": {"properties": {"cidr": {"type": "string"}, "except": {"type": "array"}}},
        f"{CORE}.Pod": {"properties": {"spec": {"$ref": "#/x"}, "unheard": {}}, "description": "kept"},
        "com.example.v1.Kettle": {"properties": {"spec": {}}},
    }
    Descriptions().describe(schemas)
    block, pod, kettle = schemas.values()
    assert block["description"]
    assert all(each["description"] for each in block["properties"].values())
    assert pod["description"] == "kept"
    assert pod["properties"]["spec"]["description"]
    assert pod["properties"]["unheard"] == {}
    assert kettle == {"properties": {"spec": {}}}


def test_names_that_python_cannot_have_are_found() -> None:
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    schemas: dict[str, Any] = {name: {"properties": {"x-kubernetes-map-type": {}, "format": {}}}}
    Descriptions().describe(schemas)
    assert all("description" in each for each in schemas[name]["properties"].values())


def test_recorded_whitespace_is_restored() -> None:
    name = "io.k8s.api.admissionregistration.v1.ApplyConfiguration"
    schemas: dict[str, Any] = {name: {"properties": {"expression": {"type": "string"}}}}
    Descriptions().describe(schemas)
    text = schemas[name]["properties"]["expression"]["description"]
    assert '\n\n\tObject{\n\t  spec: Object.spec{\n\t    serviceAccountName: "example"\n\t  }\n\t}\n\n' in text


def test_values_of_enumerations_are_listed() -> None:
    name = f"{CORE}.PodSpec"
    schemas: dict[str, Any] = {name: recorded(name)}
    Descriptions().describe(schemas)
    text = schemas[name]["properties"]["restartPolicy"]["description"]
    assert text.endswith('\n\nPossible enum values:\n - `"Always"`\n - `"Never"`\n - `"OnFailure"`')
    assert without_values(text) == text.partition("\n\nPossible")[0]


def test_types_without_a_class_in_the_package_are_described() -> None:
    names = ("api.resource.Quantity", "apis.meta.v1.Time", "apis.meta.v1.FieldsV1", "util.intstr.IntOrString")
    schemas: dict[str, Any] = {f"io.k8s.apimachinery.pkg.{name}": {} for name in names}
    Descriptions().describe(schemas)
    assert all(schema["description"] for schema in schemas.values())
