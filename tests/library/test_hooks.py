"""Hooks of declared classes: permitted changes, results, and places of declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

import steersman
from steersman import DefinitionError, FieldError, Path, Request, resource, version_of
from steersman.schema import patterns
from tests.library.requests import causes, send

MERGE = "application/merge-patch+json"


class BoatSpec(msgspec.Struct):
    captain: str = ""
    crew: int = 0
    tags: set[str] = set()
    notes: dict[str, str] = {}


@resource("e.x/v1")
class Boat(msgspec.Struct):
    spec: BoatSpec = msgspec.field(default_factory=BoatSpec)

    @steersman.prepare
    def fill(self, request: Request[Boat]) -> None:
        self.spec.captain = self.spec.captain or "nemo"
        self.spec.notes["prepared"] = "yes"
        if self.spec.captain == "thief":
            request.metadata.name = "another"
            request.metadata.namespace = "kube-system"
        if self.spec.captain == "press":
            self.spec.crew = 11

    @steersman.validate
    def check(self, request: Request[Boat]) -> Iterator[FieldError]:
        if self.spec.crew > 10:
            yield steersman.invalid(Path("spec", "crew"), self.spec.crew, "too many")


class OldBoatSpec(msgspec.Struct):
    master: str = ""


@version_of(Boat, "v1beta1")
class OldBoat(msgspec.Struct):
    spec: OldBoatSpec = msgspec.field(default_factory=OldBoatSpec)

    def convert_to(self) -> Boat:
        if self.spec.master == "lost":
            raise KeyError("no chart")
        if self.spec.master == "odd":
            return "a boat"  # type: ignore[return-value]  # what a class must not do
        return Boat(BoatSpec(captain=self.spec.master))

    @classmethod
    def convert_from(cls, hub: Boat) -> OldBoat:
        if hub.spec.captain == "modern":
            raise ValueError("there was no such captain")
        return cls(OldBoatSpec(hub.spec.captain))


def boats(version: str = "v1", namespace: str = "default") -> str:
    return f"/apis/e.x/{version}/namespaces/{namespace}/boats"


def boat(name: str, version: str = "v1", kind: str = "Boat", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"e.x/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


async def test_what_is_prepared_is_stored_though_the_version_of_the_request_cannot_say_it(serve: Any) -> None:
    server = await serve(Boat)
    made = await send(server, "POST", boats("v1beta1"), boat("a", "v1beta1", master="ahab"))
    assert (made.status, made.json()["spec"]) == (201, {"master": "ahab"})
    stored = (await send(server, "GET", f"{boats()}/a")).json()["spec"]
    assert (stored["captain"], stored["notes"]) == ("ahab", {"prepared": "yes"})
    await send(server, "PATCH", f"{boats('v1beta1')}/a", {"spec": {"master": "kirk"}}, media=MERGE)
    stored = (await send(server, "GET", f"{boats()}/a")).json()["spec"]
    assert (stored["captain"], stored["notes"]) == ("kirk", {"prepared": "yes"})


async def test_what_is_prepared_is_judged_though_the_version_of_the_request_cannot_say_it(serve: Any) -> None:
    server = await serve(Boat)
    answer = await send(server, "POST", boats("v1beta1"), boat("a", "v1beta1", master="press"))
    assert causes(answer) == [("spec.crew", "Invalid value: 11: too many")]


async def test_a_hook_that_changes_the_identity_of_an_object_fails_and_nothing_is_stored(serve: Any) -> None:
    server = await serve(Boat)
    answer = await send(server, "POST", boats(), boat("a", captain="thief"))
    assert (answer.status, answer.json()["message"]) == (
        500,
        "the hook Boat.fill has changed metadata.name, metadata.namespace: it may change labels, annotations, "
        "finalizers and owner_references",
    )
    assert (await send(server, "GET", "/apis/e.x/v1/boats")).json()["items"] == []


async def test_a_set_stays_in_the_order_of_the_request(serve: Any) -> None:
    server = await serve(Boat)
    tags = [f"t{each * 7 % 20}" for each in range(20)]
    made = await send(server, "POST", boats(), boat("a", tags=tags))
    assert made.json()["spec"]["tags"] == tags


async def test_duplicates_in_a_set_are_refused_though_the_object_is_prepared(serve: Any) -> None:
    server = await serve(Boat)
    answer = await send(server, "POST", boats(), boat("a", tags=["x", "x"]))
    assert causes(answer) == [("spec.tags[1]", 'Duplicate value: "x"')]


@resource("e.x/v1")
class Crate(msgspec.Struct):
    tags: set[str] = set()

    @steersman.prepare
    def fill(self, request: Request[Crate]) -> None:
        self.tags |= {f"t{each}" for each in range(20)}


async def test_a_set_that_is_prepared_is_sorted(serve: Any) -> None:
    server = await serve(Crate)
    made = await send(server, "POST", boats().replace("boats", "crates"), boat("a", kind="Crate"))
    assert made.json()["tags"] == sorted(f"t{each}" for each in range(20))


@pytest.mark.parametrize(
    ("master", "why"),
    [
        ("lost", "OldBoat.convert_to has raised KeyError: 'no chart'"),
        ("odd", "OldBoat.convert_to returned str, not Boat"),
    ],
)
async def test_a_conversion_that_fails_says_of_what(serve: Any, master: str, why: str) -> None:
    server = await serve(Boat)
    answer = await send(server, "POST", boats("v1beta1"), boat("a", "v1beta1", master=master))
    assert (answer.status, answer.json()["message"]) == (
        500,
        f"conversion for e.x/v1beta1, Kind=Boat failed: default/a to v1: {why}",
    )


async def test_a_list_in_which_one_object_cannot_be_converted_fails_and_names_it(serve: Any) -> None:
    server = await serve(Boat)
    for name, captain in (("a", "kirk"), ("b", "modern")):
        assert (await send(server, "POST", boats(), boat(name, captain=captain))).status == 201
    answer = await send(server, "GET", boats("v1beta1"))
    assert (answer.status, answer.json()["message"]) == (
        500,
        "conversion for e.x/v1, Kind=Boat failed: default/b to v1beta1: OldBoat.convert_from has raised ValueError: "
        "there was no such captain",
    )


class PierSpec(pydantic.BaseModel):
    depths: list[int] = []
    end: int = 9

    @pydantic.field_validator("depths")
    @classmethod
    def shallow(cls, value: list[int]) -> list[int]:
        if any(each > 5 for each in value):
            raise ValueError("is deep")
        return value

    @pydantic.field_validator("end")
    @classmethod
    def odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("is even")
        return value


@resource("e.x/v1")
class Pier(pydantic.BaseModel):
    spec: PierSpec = PierSpec()


async def test_what_pydantic_finds_wrong_is_said_of_each_field(serve: Any) -> None:
    server = await serve(Pier)
    answer = await send(server, "POST", boats().replace("boats", "piers"), boat("a", kind="Pier", depths=[9], end=2))
    assert causes(answer) == [("spec.depths", "Invalid value: [9]: is deep"), ("spec.end", "Invalid value: 2: is even")]


@resource("e.x/v1")
class Raft(msgspec.Struct):
    size: int = 0

    @steersman.validate
    def check(self, request: Request[Raft]) -> Any:
        error = steersman.invalid(Path("size"), self.size, "is wrong")
        return {1: error, 2: [error], 3: "is wrong", 4: ["is wrong"]}.get(self.size)


@pytest.mark.parametrize(("size", "code"), [(0, 201), (1, 422), (2, 422), (3, 500), (4, 500)])
async def test_what_judges_gives_field_errors(serve: Any, size: int, code: int) -> None:
    server = await serve(Raft)
    answer = await send(server, "POST", boats().replace("boats", "rafts"), boat("a", kind="Raft") | {"size": size})
    assert answer.status == code
    if code == 422:
        assert causes(answer) == [("size", f"Invalid value: {size}: is wrong")]
    if code == 500:
        assert answer.json()["message"] == "the hook Raft.check returned a str: it must yield FieldErrors"


Mark = Callable[[Callable[..., Any]], Any]


def waits(mark: Mark) -> type:
    class Foo(msgspec.Struct):
        @mark
        async def it(self, request: Request[Any]) -> None: ...

    return Foo


def does_not_wait(mark: Mark) -> type:
    class Foo(msgspec.Struct):
        @mark
        def it(self, request: Request[Any]) -> None: ...

    return Foo


def yields(mark: Mark) -> type:
    class Foo(msgspec.Struct):
        @mark
        def it(self, request: Request[Any]) -> Iterator[None]:
            yield

    return Foo


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (waits(steersman.prepare), "Foo.it: a method marked with @prepare must be `def`"),
        (waits(steersman.prepare(status=True)), "Foo.it: a method marked with @prepare must be `def`"),
        (waits(steersman.validate), "Foo.it: a method marked with @validate must be `def`"),
        (does_not_wait(steersman.admit), "Foo.it: a method marked with @admit must be `async def`"),
        (yields(steersman.prepare), "Foo.it: a method marked with @prepare returns nothing"),
        (yields(steersman.after_write), "Foo.it: a method marked with @after_write returns nothing"),
    ],
)
def test_a_hook_that_could_not_be_called_is_refused_where_it_is_declared(model: type, text: str) -> None:
    with pytest.raises(DefinitionError, match=text):
        resource("e.x/v1")(model)


def test_hooks_are_methods_of_the_stored_version() -> None:
    hub = resource("e.x/v1")(type("Hub", (msgspec.Struct,), {}))
    with pytest.raises(DefinitionError, match=r"Foo.it: hooks are methods of Hub, which is the version that is stored"):
        version_of(hub, "v1beta1")(does_not_wait(steersman.prepare))


class PlateSpec(msgspec.Struct):
    text: Annotated[str, msgspec.Meta(pattern="^[A-Z]{2,5}-[0-9]{1,4}$")] = "AB-1"


@resource("e.x/v1")
class Plate(msgspec.Struct):
    spec: PlateSpec = msgspec.field(default_factory=PlateSpec)

    @steersman.admit
    async def mark(self, request: Request[Plate]) -> None:
        request.metadata.labels["asked"] = "yes"


async def test_patterns_are_compiled_beside_the_loop_before_hooks_that_wait(serve: Any) -> None:
    """The patterns of a schema are not compiled yet when its first object arrives."""
    server = await serve(Plate)
    plates = boats().replace("boats", "plates")
    for text, status in (("AB-12", 201), ("ab-12", 422)):
        patterns._finder.cache_clear()
        answer = await send(server, "POST", plates, boat(text.lower(), kind="Plate", text=text))
        assert answer.status == status, answer.body
