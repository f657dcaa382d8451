"""Faulty code of the library's users: the server continues, and stores nothing that JSON cannot represent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

import steersman
from steersman import Event, FieldError, ObjectMeta, Request, Server, resource, version_of
from steersman.library.user_code import NoJson, UserCodeFailed, check_values, kept_running
from tests.library.requests import send

FUNCTIONS: dict[str, Callable[[Any], Any]] = {}
"""Functions called by the hooks, by the name of the hook."""


def do(place: str, instance: Any = None) -> Any:
    return FUNCTIONS[place](instance) if place in FUNCTIONS else None


@resource("e.x/v1")
class Cart(msgspec.Struct):
    """A class whose hooks all call the function of the test."""

    speed: float = 1.0
    tags: set[str] = msgspec.field(default_factory=set)
    names: list[str] = msgspec.field(default_factory=list)
    more: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        do("constructor", self)

    @steersman.prepare
    def fill(self, request: Request[Cart]) -> None:
        do("prepare", self)

    @steersman.validate
    def check(self, request: Request[Cart]) -> Iterator[FieldError]:
        do("validate", self)
        yield from ()

    @steersman.admit
    async def allow(self, request: Request[Cart]) -> None:
        await asyncio.sleep(0)
        do("admit", self)

    @steersman.after_write
    async def record(self, request: Request[Cart]) -> None:
        await asyncio.sleep(0)
        do("after_write", self)


@version_of(Cart, "v1beta1")
class OldCart(msgspec.Struct):
    speed: float = 1.0

    def convert_to(self) -> Cart:
        cart = Cart(self.speed)
        do("convert_to", cart)
        return cart

    @classmethod
    def convert_from(cls, hub: Cart) -> OldCart:
        do("convert_from", hub)
        return cls(hub.speed)


class Yard:
    """A storage whose verbs all call the function of the test."""

    async def get(self, request: Request[Wagon]) -> Wagon | None:
        return do("get") or Wagon(ObjectMeta(name="a", namespace="default", resource_version="1"))

    async def list(self, request: Request[Wagon]) -> list[Wagon]:
        do("list")
        return []

    async def create(self, request: Request[Wagon], obj: Wagon) -> Wagon:
        do("create", obj)
        return obj

    async def update(self, request: Request[Wagon], obj: Wagon) -> Wagon:
        do("update", obj)
        return obj

    async def delete(self, request: Request[Wagon], obj: Wagon) -> None:
        do("delete", obj)

    async def watch(self, request: Request[Wagon], resource_version: str) -> AsyncIterator[Event[Wagon]]:
        await asyncio.sleep(0)
        do("watch")
        yield Event("ADDED", Wagon(ObjectMeta(name="a", namespace="default", resource_version="1")))


@resource("e.x/v1", storage=Yard())
class Wagon(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    load: float = 0.0


CARTS = "/apis/e.x/v1/namespaces/default/carts"
OLD_CARTS = "/apis/e.x/v1beta1/namespaces/default/carts"
WAGONS = "/apis/e.x/v1/namespaces/default/wagons"


def a_cart(name: str = "a", version: str = "v1") -> dict[str, Any]:
    return {"apiVersion": f"e.x/{version}", "kind": "Cart", "metadata": {"name": name}}


def a_wagon() -> dict[str, Any]:
    return {"apiVersion": "e.x/v1", "kind": "Wagon", "metadata": {"name": "a", "resourceVersion": "1"}}


def leave(_: Any) -> None:
    sys.exit(3)


def interrupt(_: Any) -> None:
    raise KeyboardInterrupt


def stop(_: Any) -> None:
    raise BaseException("no Exception")


@pytest.fixture(autouse=True)
def clear_functions() -> Iterator[None]:
    yield
    FUNCTIONS.clear()


@pytest.mark.parametrize("end", [leave, interrupt, stop])
@pytest.mark.parametrize(
    ("place", "method", "path", "body"),
    [
        ("constructor", "POST", CARTS, a_cart()),
        ("prepare", "POST", CARTS, a_cart()),
        ("validate", "POST", CARTS, a_cart()),
        ("admit", "POST", CARTS, a_cart()),
        ("after_write", "POST", CARTS, a_cart()),
        ("convert_to", "POST", OLD_CARTS, a_cart(version="v1beta1")),
        ("convert_from", "POST", OLD_CARTS, a_cart(version="v1beta1")),
        ("get", "GET", f"{WAGONS}/a", None),
        ("list", "GET", WAGONS, None),
        ("create", "POST", WAGONS, {**a_wagon(), "metadata": {"name": "a"}}),
        ("update", "PUT", f"{WAGONS}/a", a_wagon()),
        ("delete", "DELETE", f"{WAGONS}/a", None),
        ("watch", "GET", f"{WAGONS}?watch=1&timeoutSeconds=1", None),
    ],
)
async def test_nothing_that_code_raises_ends_the_server(
    serve: Any, end: Callable[[Any], None], place: str, method: str, path: str, body: Any
) -> None:
    server: Server = await serve(Cart, Wagon)
    FUNCTIONS[place] = end
    answer = await send(server, method, path, body)
    if place == "after_write":  # whose failures are logged: the write stays
        assert answer.status == 201
    elif place == "watch":
        assert b"the watch has failed" in answer.body
    else:
        assert answer.status == 500, answer.body
    FUNCTIONS.clear()
    assert (await send(server, "GET", "/readyz")).status == 200
    assert (await send(server, "POST", CARTS, a_cart("b"))).status == 201


@pytest.mark.parametrize(
    ("put", "told"),
    [
        (lambda cart: setattr(cart, "speed", float("nan")), "speed is nan"),
        (lambda cart: setattr(cart, "speed", float("inf")), "speed is inf"),
        (lambda cart: cart.more.update(a=[1, {"b": float("-inf")}]), "more[a][1][b] is -inf"),
        (lambda cart: cart.more.update(a={1, 2}), "more[a] is a set"),
        (lambda cart: setattr(cart, "names", frozenset("ab")), "names is a frozenset"),
    ],
)
@pytest.mark.parametrize("place", ["prepare", "convert_to"])
async def test_what_is_no_json_is_refused_and_told_where_it_is(
    serve: Any, put: Callable[[Any], None], told: str, place: str
) -> None:
    server: Server = await serve(Cart)
    FUNCTIONS[place] = put
    version, path = ("v1", CARTS) if place == "prepare" else ("v1beta1", OLD_CARTS)
    answer = await send(server, "POST", path, a_cart(version=version))
    assert answer.status == 500
    assert told in answer.json()["message"]
    assert ("Cart.fill" if place == "prepare" else "OldCart.convert_to") in answer.json()["message"]
    FUNCTIONS.clear()
    assert (await send(server, "GET", CARTS)).json()["items"] == []


async def test_a_set_in_a_field_that_is_one_is_stored_in_order(serve: Any) -> None:
    server: Server = await serve(Cart)
    FUNCTIONS["prepare"] = lambda cart: cart.tags.update("cab")
    answer = await send(server, "POST", CARTS, a_cart())
    assert answer.json()["tags"] == ["a", "b", "c"]


async def test_a_storage_that_gives_no_json_is_told_so(serve: Any) -> None:
    server: Server = await serve(Wagon)
    FUNCTIONS["get"] = lambda _: Wagon(ObjectMeta(name="a", namespace="default"), load=float("nan"))
    answer = await send(server, "GET", f"{WAGONS}/a")
    assert answer.status == 500
    assert "the storage of Wagon returned a value that JSON cannot represent: load is nan" in answer.json()["message"]


@dataclass
class Plain:
    some: list[float] = field(default_factory=list)
    sets: dict[str, set[int]] | None = None


class Model(pydantic.BaseModel):
    inner: list[float] = []
    marks: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "instance", [Plain([1.0], {"a": {1}}), Plain(), Model(inner=[1.0], marks=frozenset("a")), Plain([], {})]
)
def test_values_of_any_kind_of_class_are_taken(instance: Any) -> None:
    check_values(instance)


@pytest.mark.parametrize("instance", [Plain([float("nan")]), Plain({1.0}), Model(inner=[float("inf")])])  # type: ignore[arg-type]
def test_and_refused(instance: Any) -> None:
    with pytest.raises(NoJson):
        check_values(instance)


def test_a_cancelled_task_is_cancelled_only_where_it_may_wait() -> None:
    with pytest.raises(asyncio.CancelledError), kept_running("x", may_wait=True):
        raise asyncio.CancelledError
    with pytest.raises(UserCodeFailed, match="x has raised CancelledError"), kept_running("x"):
        raise asyncio.CancelledError
    with pytest.raises(KeyError), kept_running("x"):
        raise KeyError


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"storage": "mem"}, "storage: 'mem' is none of sqlite, memory, did you mean memory"),
        ({"storage": None}, "storage: None is none of sqlite, memory"),
        ({"secure_port": 70000}, "secure_port is a number from 0"),
        ({"secure_port": "6443"}, "secure_port is a number from 0"),
        ({"authorization_mode": ("RBCA",)}, "'RBCA' is none of RBAC, AlwaysAllow, AlwaysDeny, did you mean RBAC"),
    ],
)
def test_settings_that_there_are_not_are_refused_at_once(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        Server(Cart, data_dir=tmp_path, **options)
    assert list(tmp_path.iterdir()) == []
