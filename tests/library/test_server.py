"""Servers of declared classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

import steersman
from steersman import (
    DefinitionError,
    FieldError,
    PrinterColumn,
    Request,
    Rule,
    Scale,
    Server,
    definition_of,
    mount,
    resource,
    version_of,
)
from steersman.controlplane.control_plane import ControlPlane
from tests.library.requests import causes, send

HEARD: list[tuple[str, str, str]] = []


class ShipSpec(msgspec.Struct, rename="camel"):
    """The desired state of a ship."""

    replicas: Annotated[int, msgspec.Meta(ge=0, le=10)] = 1
    name: Annotated[str, Rule("!self.contains(' ')", message="has a space")] = "nameless"
    captain: str | None = None


class ShipStatus(msgspec.Struct, rename="camel"):
    """The observed state of a ship."""

    replicas: int = 0


@resource(
    "e.x/v1",
    short_names=["sh"],
    scale=Scale(),
    printer_columns=[PrinterColumn("Captain", ".spec.captain")],
    rules=[Rule("self.metadata.name != 'titanic'", message="no such ship")],
)
class Ship(msgspec.Struct):
    """A ship."""

    spec: ShipSpec = msgspec.field(default_factory=ShipSpec)
    status: ShipStatus | None = None

    @steersman.prepare
    def promote(self, request: Request[Ship]) -> None:
        if self.spec.captain is None:
            self.spec.captain = request.user.name
            request.metadata.labels["promoted"] = "yes"
            request.warn("there was no captain")

    @steersman.validate
    def check(self, request: Request[Ship]) -> Iterator[FieldError]:
        if request.old is not None and request.old.spec.captain == "ahab" and self.spec.captain != "ahab":
            yield steersman.forbidden(steersman.Path("spec", "captain"), "ahab stays")
        if self.status is not None and self.status.replicas > 5:
            yield steersman.invalid(steersman.Path("status", "replicas"), self.status.replicas, "too many")

    @steersman.after_write
    async def record(self, request: Request[Ship]) -> None:
        HEARD.append((request.operation, request.metadata.name, self.spec.captain or ""))
        if self.spec.captain == "queeg":
            raise RuntimeError("mutiny")


class OldShipSpec(msgspec.Struct):
    master: str = ""


@version_of(Ship, "v1alpha1", deprecated=True)
class OldShip(msgspec.Struct):
    """A ship in an old version."""

    spec: OldShipSpec = msgspec.field(default_factory=OldShipSpec)

    def convert_to(self) -> Ship:
        return Ship(ShipSpec(captain=self.spec.master or None))

    @classmethod
    def convert_from(cls, hub: Ship) -> OldShip:
        return cls(OldShipSpec(hub.spec.captain or ""))


SHIPS = "/apis/e.x/v1/namespaces/default/ships"
OLD_SHIPS = "/apis/e.x/v1alpha1/namespaces/default/ships"


def ship(called: str, version: str = "v1", *, kind: str = "Ship", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"e.x/{version}", "kind": kind, "metadata": {"name": called}, "spec": spec}


@pytest.fixture
async def ships(serve: Any) -> Server:
    HEARD.clear()
    server: Server = await serve(Ship)
    return server


async def test_defaults_pruning_and_hooks_make_the_object(ships: Server) -> None:
    answer = await send(ships, "POST", SHIPS, ship("a", unknown=1) | {"status": {"replicas": 9}})
    assert answer.status == 201
    made = answer.json()
    assert made["spec"] == {"captain": "admin", "name": "nameless", "replicas": 1}
    assert "status" not in made
    assert made["metadata"]["labels"] == {"promoted": "yes"}
    assert "there was no captain" in answer.headers["warning"]
    assert HEARD == [("CREATE", "a", "admin")]


async def test_schema_rules_and_function_judge_in_this_order(ships: Server) -> None:
    both = await send(ships, "POST", SHIPS, ship("a", replicas=11, name="a b"))
    assert ("spec.replicas", "Invalid value: 11: spec.replicas in body should be less than or equal to 10") in causes(
        both
    )
    rule = await send(ships, "POST", SHIPS, ship("titanic"))
    assert [field for field, _ in causes(rule)] == ["<nil>"]
    assert (await send(ships, "POST", SHIPS, ship("b", captain="ahab"))).status == 201
    changed = await send(
        ships,
        "PUT",
        f"{SHIPS}/b",
        ship("b", captain="starbuck") | {"metadata": (await send(ships, "GET", f"{SHIPS}/b")).json()["metadata"]},
    )
    assert causes(changed) == [("spec.captain", "Forbidden: ahab stays")]


async def test_the_status_is_written_and_judged_apart(ships: Server) -> None:
    await send(ships, "POST", SHIPS, ship("a"))
    merge = "application/merge-patch+json"
    for target in (f"{SHIPS}/a", f"{SHIPS}/a/status"):
        answer = await send(ships, "PATCH", target, {"status": {"replicas": 3}, "spec": {"replicas": 4}}, media=merge)
        assert answer.status == 200, answer.body
    body = answer.json()
    assert (body["spec"]["replicas"], body["status"]) == (4, {"replicas": 3})
    wrong = await send(ships, "PATCH", f"{SHIPS}/a/status", {"status": {"replicas": 6}}, media=merge)
    assert causes(wrong) == [("status.replicas", "Invalid value: 6: too many")]


async def test_it_scales(ships: Server) -> None:
    await send(ships, "POST", SHIPS, ship("a"))
    answer = await send(
        ships, "PATCH", f"{SHIPS}/a/scale", {"spec": {"replicas": 7}}, media="application/merge-patch+json"
    )
    assert (answer.status, answer.json()["spec"]) == (200, {"replicas": 7})
    assert (await send(ships, "GET", f"{SHIPS}/a")).json()["spec"]["replicas"] == 7


async def test_versions_are_converted_by_the_functions_of_their_classes(ships: Server) -> None:
    answer = await send(ships, "POST", OLD_SHIPS, ship("a", "v1alpha1", master="hook"))
    assert (answer.status, answer.json()["spec"]) == (201, {"master": "hook"})
    assert "e.x/v1alpha1 Ship is deprecated; use e.x/v1 Ship" in answer.headers["warning"]
    stored = (await send(ships, "GET", f"{SHIPS}/a")).json()
    assert stored["spec"] == {"captain": "hook", "name": "nameless", "replicas": 1}
    listed = (await send(ships, "GET", OLD_SHIPS)).json()
    assert [(each["apiVersion"], each["spec"]) for each in listed["items"]] == [("e.x/v1alpha1", {"master": "hook"})]


async def test_hooks_work_in_the_stored_version_whatever_is_asked_for(ships: Server) -> None:
    answer = await send(ships, "POST", OLD_SHIPS, ship("a", "v1alpha1"))
    assert answer.json()["spec"] == {"master": "admin"}
    assert HEARD == [("CREATE", "a", "admin")]


async def test_what_is_done_after_a_write_hears_of_each_and_cannot_undo_it(
    ships: Server, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await send(ships, "POST", SHIPS, ship("a", captain="queeg"))).status == 201
    assert "an after_write hook of a failed" in caplog.text
    merge = "application/merge-patch+json"
    await send(ships, "PATCH", f"{SHIPS}/a", {"spec": {"captain": "kirk"}}, media=merge)
    await send(ships, "PATCH", f"{SHIPS}/a?dryRun=All", {"spec": {"captain": "spock"}}, media=merge)
    await send(ships, "DELETE", f"{SHIPS}/a")
    assert HEARD == [("CREATE", "a", "queeg"), ("UPDATE", "a", "kirk"), ("DELETE", "a", "kirk")]


async def test_a_deletion_is_heard_of_once_in_any_version_and_not_on_a_dry_run(ships: Server) -> None:
    await send(ships, "POST", SHIPS, ship("a", captain="kirk"))
    HEARD.clear()
    await send(ships, "DELETE", f"{OLD_SHIPS}/a?dryRun=All")
    assert HEARD == []
    await send(ships, "DELETE", f"{OLD_SHIPS}/a")
    assert HEARD == [("DELETE", "a", "kirk")]


async def test_server_side_apply_owns_the_fields(ships: Server) -> None:
    for manager, code in (("one", 201), ("two", 409)):
        answer = await send(
            ships,
            "PATCH",
            f"{SHIPS}/a?fieldManager={manager}",
            ship("a", captain=manager),
            media="application/apply-patch+yaml",
        )
        assert answer.status == code, answer.body


async def test_rights_are_those_of_rbac(ships: Server) -> None:
    refused = await send(ships, "GET", SHIPS, token="alice-token")
    assert (refused.status, refused.json()["message"]) == (
        403,
        'ships.e.x is forbidden: User "alice" cannot list resource "ships" in API group "e.x" '
        'in the namespace "default"',
    )
    role = {
        "metadata": {"name": "sailor"},
        "rules": [{"apiGroups": ["e.x"], "resources": ["ships"], "verbs": ["list"]}],
    }
    binding = {
        "metadata": {"name": "sailors"},
        "subjects": [{"kind": "Group", "name": "dev", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "sailor"},
    }
    for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        assert (await send(ships, "POST", f"/apis/rbac.authorization.k8s.io/v1/{plural}", body)).status == 201
    assert (await send(ships, "GET", SHIPS, token="alice-token")).status == 200


async def test_nothing_is_made_in_a_namespace_that_is_not_there(ships: Server) -> None:
    answer = await send(ships, "POST", "/apis/e.x/v1/namespaces/nowhere/ships", ship("a"))
    assert (answer.status, answer.json()["message"]) == (404, 'namespaces "nowhere" not found')


async def test_discovery_and_openapi_tell_of_it(ships: Server) -> None:
    resources = (await send(ships, "GET", "/apis/e.x/v1")).json()["resources"]
    assert [each["name"] for each in resources] == ["ships", "ships/status", "ships/scale"]
    document = (await send(ships, "GET", "/openapi/v3/apis/e.x/v1")).json()
    assert document["components"]["schemas"]["x.e.v1.Ship"]["description"] == "A ship."
    assert (await send(ships, "GET", "/readyz")).body == b"ok"


@resource("e.x/v1", namespaced=False)
@dataclass
class Buoy:
    color: str = "red"
    tags: list[str] = field(default_factory=list)


class HarborSpec(pydantic.BaseModel):
    depth: Annotated[int, pydantic.Field(ge=1)] = 3

    @pydantic.field_validator("depth")
    @classmethod
    def odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("is even")
        return value


@resource("e.x/v1")
class Harbor(pydantic.BaseModel):
    spec: HarborSpec = HarborSpec()


async def test_dataclasses_and_pydantic_models_are_served(serve: Any) -> None:
    server = await serve(Buoy, Harbor)
    made = await send(server, "POST", "/apis/e.x/v1/buoys", ship("a", kind="Buoy"))
    assert (made.status, made.json()["color"], made.json()["tags"]) == (201, "red", [])
    harbors = "/apis/e.x/v1/namespaces/default/harbors"
    assert (await send(server, "POST", harbors, ship("a", kind="Harbor"))).json()["spec"] == {"depth": 3}
    even = await send(server, "POST", harbors, ship("b", kind="Harbor", depth=2))
    assert "is even" in causes(even)[0][1]


async def test_what_kube_apiserver_would_refuse_as_a_definition_is_not_served(serve: Any) -> None:
    @resource("e.x/v1", rules=[Rule("self.nothing == 1")])
    class Invalid(msgspec.Struct):
        size: int = 1

    with pytest.raises(DefinitionError, match="undefined field 'nothing'"):
        await serve(Invalid)


async def test_objects_are_there_after_another_start(serve: Any, tmp_path: Path) -> None:
    first = await serve(Ship, storage="sqlite", data_dir=tmp_path)
    await send(first, "POST", SHIPS, ship("a"))
    await first.stop()
    second = await serve(Ship, storage="sqlite", data_dir=tmp_path)
    assert (await send(second, "GET", f"{SHIPS}/a")).status == 200


async def test_a_server_starts_once_and_is_reached_while_it_runs(ships: Server) -> None:
    with pytest.raises(RuntimeError, match="already running"):
        await ships.start()
    with pytest.raises(RuntimeError, match="is not running"):
        _ = Server(Ship).url


async def test_a_whole_control_plane_serves_it_beside_its_own(start_control_plane: Any, client_of: Any) -> None:
    plane: ControlPlane = await start_control_plane()
    await mount(plane, Ship)
    client = client_of(plane)
    assert (await client.post(SHIPS, ship("a"))).json()["spec"]["captain"] == "admin"
    assert (await client.get(f"{OLD_SHIPS}/a")).json()["spec"] == {"master": "admin"}


async def test_the_definition_is_taken_by_a_control_plane(start_control_plane: Any, client_of: Any) -> None:
    client = client_of(await start_control_plane())
    answer = await client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition_of(Ship))
    assert answer.status == 201, answer.body


async def test_a_definition_of_the_name_of_a_mounted_class_is_not_served(
    start_control_plane: Any, client_of: Any
) -> None:
    plane: ControlPlane = await start_control_plane()
    client = client_of(plane)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await mount(plane, Ship)
    assert (await client.post(SHIPS, ship("a"))).json()["spec"]["captain"] == "admin"
    assert (await client.post(definitions, definition_of(Ship))).status == 201
    await plane.definitions_settled()
    body = (await client.get(f"{definitions}/ships.e.x")).json()
    told = {each["type"]: (each["status"], each["reason"]) for each in body["status"]["conditions"]}
    assert told["NamesAccepted"] == ("False", "PluralConflict")
    assert told["Established"][0] == "False"
    assert (await client.post(SHIPS, ship("b"))).json()["spec"]["captain"] == "admin"
    assert (await client.delete(f"{definitions}/ships.e.x")).status == 200
    await plane.definitions_settled()
    assert (await client.get(f"{SHIPS}/a")).status == 200


async def test_a_mounted_class_takes_the_place_of_a_definition(start_control_plane: Any, client_of: Any) -> None:
    plane: ControlPlane = await start_control_plane()
    client = client_of(plane)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await client.post(definitions, definition_of(Ship))).status == 201
    await plane.definitions_settled()
    await mount(plane, Ship)
    await plane.definitions_settled()
    body = (await client.get(f"{definitions}/ships.e.x")).json()
    told = {each["type"]: each["status"] for each in body["status"]["conditions"]}
    assert (told["NamesAccepted"], told["Established"]) == ("False", "False")
    assert (await client.post(SHIPS, ship("a"))).json()["spec"]["captain"] == "admin"
