"""Tests of DefaultIngressClass."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import Chain
from steersman.admission_plugins.default_ingress_class import DefaultIngressClass
from steersman.api.networking.v1 import Ingress
from steersman.machinery.built_in.classes import INGRESS_CLASS
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.networking.ingresses import INGRESSES
from tests.admission_plugins.writes import write_of


def ingress(spec: dict[str, Any], **annotations: str) -> Ingress:
    metadata = {"name": "i", "namespace": "ns", "annotations": annotations}
    return from_plain(Ingress, {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("made", "default", "expected"),
    [
        (ingress({}), "usual", "usual"),
        (ingress({}), None, None),
        (ingress({"ingressClassName": ""}), "usual", ""),
        (ingress({"ingressClassName": "own"}), "usual", "own"),
        (ingress({}, **{INGRESS_CLASS: "old"}), "usual", None),
    ],
)
async def test_ingresses_that_name_no_class_get_the_default(
    made: Ingress, default: str | None, expected: str | None
) -> None:
    await DefaultIngressClass(lambda: default).admit(write_of(INGRESSES, made))
    assert made.spec.ingress_class_name == expected


async def test_an_ingress_status_is_let_alone() -> None:
    made = ingress({})
    await Chain((DefaultIngressClass(lambda: "usual"),)).admit(write_of(INGRESSES, made, subresource="status"))
    assert made.spec.ingress_class_name is None
