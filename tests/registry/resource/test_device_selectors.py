"""CEL expressions that select devices: upstream's error texts, and cost limits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.api.resource.v1 import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
)
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.errors.field import Path
from steersman.registry.resource.claim_validation import validate_selector
from steersman.registry.resource.device_selectors import Verdict, check_expression
from steersman.registry.resource.deviceclasses import DEVICE_CLASSES
from steersman.registry.resource.resourceclaims import RESOURCE_CLAIMS
from steersman.registry.resource.resourceclaimtemplates import RESOURCE_CLAIM_TEMPLATES
from steersman.registry.resource.selector_verdicts import check_selectors, claim_selectors
from steersman.rest.context import Context
from tests.struct_class import struct_class

GROUP = "resource.k8s.io"
CLASSES = "deviceclasses"


def device_class(*expressions: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "a100"',
        'device.attributes["gpu.example.com"].isBig',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.a && gpu.?version.orValue(false))',
        'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.2.3"))',
        "device.allowMultipleAllocations",
        'device.attributes.exists(domain, names, "model" in names)',
    ],
)
def test_expressions_over_devices_are_accepted(expression: str) -> None:
    assert check_expression(expression, stored=False) == Verdict()


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("[device.driver]", "must evaluate to bool or the unknown type, not list(string)"),
        (
            "device.vendor",
            "compilation failed: ERROR: <input>:1:7: undefined field 'vendor'\n | device.vendor\n | ......^",
        ),
        (
            "device.driver == ",
            "compilation failed: ERROR: <input>:1:18: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', "
            "'.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n"
            " | device.driver == \n | .................^",
        ),
    ],
)
def test_what_selects_no_devices_is_told(expression: str, error: str) -> None:
    assert check_expression(expression, stored=False).error == error


async def test_a_class_is_refused_with_the_place_of_the_expression(cluster: Callable[..., Any]) -> None:
    c = await cluster(DEVICE_CLASSES)
    costly = "a == b"
    for variable in "dcba":
        costly = f"device.attributes.all({variable}, {costly})"
    assert await c.faults(c.create(CLASSES, device_class("true", "1", costly, "'" * 10241), group=GROUP)) == [
        'spec.selectors[1].cel.expression: Invalid value: "1": must evaluate to bool or the unknown type, not int',
        "spec.selectors[2].cel.expression: Forbidden: too complex, exceeds cost limit",
        "spec.selectors[3].cel.expression: Too long: may not be more than 10240 bytes",
    ]


async def test_a_constant_without_a_value_is_an_internal_error_as_upstream(cluster: Callable[..., Any]) -> None:
    c = await cluster(DEVICE_CLASSES)
    assert await c.faults(c.create(CLASSES, device_class("int('one') == 1"), group=GROUP)) == [
        "spec.selectors[0].cel.expression: Internal error: program instantiation failed: type conversion error from "
        "'string' to 'int'"
    ]


async def test_claims_and_templates_are_held_to_the_same(cluster: Callable[..., Any]) -> None:
    c = await cluster(RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
    request = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "1"}}]}
    devices = {
        "requests": [
            {"name": "a", "exactly": request},
            {"name": "b", "firstAvailable": [{"name": "c", **request}]},
        ]
    }
    wrong = 'Invalid value: "1": must evaluate to bool or the unknown type, not int'
    claim = {"metadata": {"name": "c"}, "spec": {"devices": devices}}
    assert await c.faults(c.create("resourceclaims", claim, group=GROUP)) == [
        f"spec.devices.requests[0].exactly.selectors[0].cel.expression: {wrong}",
        f"spec.devices.requests[1].firstAvailable[0].selectors[0].cel.expression: {wrong}",
    ]
    template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": devices}}}
    assert await c.faults(c.create("resourceclaimtemplates", template, group=GROUP)) == [
        f"spec.spec.devices.requests[0].exactly.selectors[0].cel.expression: {wrong}",
        f"spec.spec.devices.requests[1].firstAvailable[0].selectors[0].cel.expression: {wrong}",
    ]


def test_stored_expressions_may_use_what_new_ones_may_not() -> None:
    expression = 'device.attributes["a"].b.includes("c")'
    assert check_expression(expression, stored=True) == Verdict()
    assert "undeclared reference to 'includes'" in (check_expression(expression, stored=False).error or "")


@pytest.mark.parametrize("ahead", [True, False])
async def test_a_class_keeps_selectors_that_only_stored_ones_may_have(ahead: bool) -> None:
    """The expressions are checked before the validation of the update, as in a server, or during it."""
    old = from_plain(struct_class(DEVICE_CLASSES.kind), device_class('device.attributes["a"].b.includes("c")'))
    new = from_plain(struct_class(DEVICE_CLASSES.kind), device_class('device.attributes["a"].b.includes("c")'))
    changed = from_plain(struct_class(DEVICE_CLASSES.kind), device_class('device.attributes["a"].b.includes("d")'))
    strategy: Any = DEVICE_CLASSES.strategy
    assert DEVICE_CLASSES.inquiry is not None
    inquiry = DEVICE_CLASSES.inquiry(SimpleNamespace())
    ctx = Context()
    if ahead:
        await inquiry.look_up(ctx, new, old)
        assert len(ctx.inquiry_result) == 1
    assert not list(strategy.validate_update(ctx, new, old))
    if ahead:
        await inquiry.look_up(ctx, changed, old)
    (fault,) = strategy.validate_update(ctx, changed, old)
    assert fault.field == "spec.selectors[0].cel.expression"


def test_a_selector_says_how_it_selects() -> None:
    (fault,) = validate_selector(DeviceSelector(), Path("selectors")[0])
    assert fault.field == "selectors[0].cel"


def test_a_server_starts_without_the_engine() -> None:
    code = (
        "import sys, steersman.controlplane.resources\n"
        "print([name for name in sys.modules if name.startswith('steersman.cel') or name == 're2'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_selectors_are_judged_beside_the_loop() -> None:
    """Other tasks run while hundreds of expressions are compiled."""
    terms = " && ".join(f'device.attributes["a"].b{number} == {number}' for number in range(20))
    selectors = [DeviceSelector(cel=CELDeviceSelector(expression=f"{terms} && {number} == 0")) for number in range(40)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    verdicts = await check_selectors(selectors)
    counting.cancel()
    assert len(verdicts) == 40
    assert set(verdicts.values()) == {Verdict()}
    assert turns > 40


def test_selectors_of_lists_that_are_too_long_are_not_judged() -> None:
    selector = DeviceSelector(cel=CELDeviceSelector(expression="true"))
    asked = DeviceRequest(name="r", exactly=ExactDeviceRequest(selectors=[selector] * 32))
    assert len(list(claim_selectors(DeviceClaim(requests=[asked] * 32)))) == 32 * 32
    assert list(claim_selectors(DeviceClaim(requests=[asked] * 33))) == []
    asked.exactly = ExactDeviceRequest(selectors=[selector] * 33)
    assert list(claim_selectors(DeviceClaim(requests=[asked]))) == []
