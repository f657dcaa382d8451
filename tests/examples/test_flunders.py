"""Tests of the flunders of sample-apiserver, served by the library."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from examples.flunders.types import Fischer, Flunder
from steersman import Server, definition_of, mount
from steersman.testing import Environment
from tests import ROOT
from tests.library.requests import causes, send, write_tokens

GROUP = "/apis/wardle.example.com"
FLUNDERS = GROUP + "/v1beta1/namespaces/default/flunders"
OLDER = GROUP + "/v1alpha1/namespaces/default/flunders"


@pytest_asyncio.fixture
async def server(keys_folder: Path, tmp_path: Path) -> AsyncIterator[Server]:
    tokens = str(write_tokens(tmp_path))
    made = Server(Flunder, Fischer, data_dir=keys_folder, storage="memory", listen=False, token_auth_file=tokens)
    async with made as running:
        yield running


def flunder(name: str, version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"wardle.example.com/{version}", "kind": "Flunder", "metadata": {"name": name}, "spec": spec}


async def test_both_versions_are_discovered_the_stable_one_first(server: Server) -> None:
    body = (await send(server, "GET", GROUP)).json()
    assert [each["version"] for each in body["versions"]] == ["v1beta1", "v1alpha1"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"reference": "a", "referenceType": "Flunder"}, {"flunderReference": "a", "referenceType": "Flunder"}),
        ({"reference": "a", "referenceType": "Fischer"}, {"fischerReference": "a", "referenceType": "Fischer"}),
    ],
)
async def test_versions_say_the_same_in_their_own_words(
    server: Server, older: dict[str, str], newer: dict[str, str]
) -> None:
    assert (await send(server, "POST", OLDER, flunder("x", "v1alpha1", **older))).status == 201
    assert (await send(server, "GET", f"{FLUNDERS}/x")).json()["spec"] == newer
    assert (await send(server, "POST", FLUNDERS, flunder("y", **newer))).status == 201
    assert (await send(server, "GET", f"{OLDER}/y")).json()["spec"] == older


async def test_the_type_of_what_is_referred_to_is_filled_in(server: Server) -> None:
    made = await send(server, "POST", FLUNDERS, flunder("x", fischerReference="y"))
    assert made.json()["spec"] == {"fischerReference": "y", "referenceType": "Fischer"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.flunderReference"),
        ({"flunderReference": "a", "fischerReference": "b"}, "spec.fischerReference"),
        ({"flunderReference": "a", "referenceType": "Fischer"}, "spec.referenceType"),
        ({"flunderReference": "a", "referenceType": "Whale"}, "spec.referenceType"),
    ],
)
async def test_a_flunder_refers_to_one_thing(server: Server, spec: dict[str, str], field: str) -> None:
    assert field in [each for each, _ in causes(await send(server, "POST", FLUNDERS, flunder("x", **spec)))]


async def test_fischers_have_a_set_of_names(server: Server) -> None:
    fischer = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": "x"}}
    twice = await send(server, "POST", GROUP + "/v1alpha1/fischers", fischer | {"disallowedFlunders": ["a", "a"]})
    assert causes(twice) == [("disallowedFlunders[1]", 'Duplicate value: "a"')]


async def test_a_name_that_a_fischer_disallows_is_forbidden(server: Server) -> None:
    fischer = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": "x"}}
    names = {"disallowedFlunders": ["badname"]}
    assert (await send(server, "POST", GROUP + "/v1alpha1/fischers", fischer | names)).status == 201
    refused = await send(server, "POST", FLUNDERS, flunder("badname", flunderReference="y"))
    assert (refused.status, refused.json()["message"]) == (
        403,
        'flunders.wardle.example.com "badname" is forbidden: this name may not be used, '
        "please change the resource name",
    )
    assert (await send(server, "POST", FLUNDERS, flunder("goodname", flunderReference="y"))).status == 201


def test_the_definition_has_both_versions() -> None:
    versions = definition_of(Flunder)["spec"]["versions"]
    assert [(each["name"], each["storage"]) for each in versions] == [("v1beta1", True), ("v1alpha1", False)]


async def test_hooks_see_objects_that_nobody_has_asked_for_where_they_are_mounted() -> None:
    async with Environment() as environment:
        await mount(environment.plane, Flunder, Fischer)
        client = environment.client()
        assert (await client.post(FLUNDERS, flunder("x", flunderReference="y"))).status == 201
        head = {"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": "f"}}
        fischer = {**head, "disallowedFlunders": ["z"]}
        assert (await client.post(f"{GROUP}/v1alpha1/fischers", fischer)).status == 201
        assert (await client.post(FLUNDERS, flunder("z", flunderReference="y"))).status == 403


def test_help_is_no_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.flunders", "--help"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("usage: python -m examples.flunders [-h] folder [port]")
    assert list(tmp_path.iterdir()) == []
