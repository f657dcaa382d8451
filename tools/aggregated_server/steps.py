"""Requests to both servers: to the sample-apiserver, and to a server that fails in many ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

GROUP: Final = "wardle.example.com"
ROOT: Final = f"/apis/{GROUP}/v1alpha1"
FLUNDERS: Final = f"{ROOT}/namespaces/default/flunders"
FAULTS_GROUP: Final = "faults.example.com"
FAULTS: Final = f"/apis/{FAULTS_GROUP}/v1/namespaces/default/things"
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}
_ALICE: Final = {"Authorization": "Bearer alice-token"}
_TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
_AGGREGATED: Final = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}


@dataclass(frozen=True)
class Step:
    """A request; `of` is a path in the answer of which alone is compared, `only` what a list there must have."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    of: str = ""
    only: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.path}{''.join(f' {name}: {value}' for name, value in self.headers.items())}"


def flunder(name: str, **more: Any) -> dict[str, Any]:
    """An object of the sample-apiserver."""
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Flunder", "metadata": {"name": name, **more}, "spec": {}}


def of_sample() -> Iterator[Step]:
    """Discovery, OpenAPI, every verb, rights, and what is refused."""
    for headers in ({}, _AGGREGATED, _TABLE, {"Accept": "application/yaml"}, {"Accept": "text/html"}):
        yield Step("GET", ROOT, headers=headers)
        yield Step("GET", f"/apis/{GROUP}", headers=headers)
    yield Step("GET", "/apis", headers=_AGGREGATED, of="items", only=GROUP)
    yield Step("GET", "/apis", of="groups", only=GROUP)
    yield Step("GET", "/openapi/v3", of="paths", only=f"apis/{GROUP}")
    yield Step("GET", f"/openapi/v3{ROOT}", of="paths")
    yield Step("GET", f"/openapi/v3{ROOT}", of="components.schemas", only="wardle")
    yield Step("GET", "/openapi/v2", of="paths", only=ROOT)
    yield Step("GET", "/openapi/v2", of="definitions", only="wardle")
    yield Step("GET", f"/apis/{GROUP}/", headers=_ALICE)
    yield Step("GET", f"{ROOT}/", headers=_ALICE)
    yield Step("GET", f"{ROOT}/nothing", headers=_ALICE)
    yield Step("GET", f"{ROOT}/nothing")
    yield Step("POST", FLUNDERS, flunder("a", labels={"x": "y"}))
    yield Step("POST", FLUNDERS, flunder("a"))
    yield Step("POST", FLUNDERS, flunder("A b"))
    yield Step("POST", FLUNDERS, {"kind": "Pod", "apiVersion": "v1"})
    yield Step("POST", FLUNDERS, "no json")
    yield Step("POST", FLUNDERS, flunder("b"), _ALICE)
    yield Step("POST", f"{FLUNDERS}?dryRun=All", flunder("c"))
    yield Step("POST", f"{FLUNDERS}?fieldManager=me%20too&fieldValidation=Strict", flunder("d") | {"extra": 1})
    yield Step("GET", f"{FLUNDERS}/a")
    yield Step("GET", f"{FLUNDERS}/a", headers=_TABLE)
    yield Step("GET", f"{FLUNDERS}/a", headers={"Accept": "application/yaml"})
    yield Step("GET", f"{FLUNDERS}/none")
    yield Step("HEAD", f"{FLUNDERS}/a")
    yield Step("GET", f"{FLUNDERS}?labelSelector=x%3Dy&limit=1")
    yield Step("GET", f"{FLUNDERS}?labelSelector=x%3D%3D%3Dy")
    yield Step("GET", f"{ROOT}/flunders", headers=_TABLE)
    yield Step("GET", f"{FLUNDERS}?watch=1&timeoutSeconds=1&sendInitialEvents=false")
    yield Step("PATCH", f"{FLUNDERS}/a", {"metadata": {"labels": {"p": "q"}}}, _MERGE)
    yield Step("PATCH", f"{FLUNDERS}/applied?fieldManager=m&force=true", flunder("applied"), _APPLY)
    yield Step("PATCH", f"{FLUNDERS}/a", {"metadata": {"labels": {"p": "q"}}}, {**_MERGE, **_ALICE})
    yield Step("PUT", f"{FLUNDERS}/a", flunder("a", labels={"put": "it"}))
    yield Step("PUT", f"{FLUNDERS}/a", flunder("b"))
    yield Step("PATCH", f"{FLUNDERS}/a", {}, {"Content-Type": "text/plain"})
    yield Step("DELETE", f"{FLUNDERS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]})
    yield Step("DELETE", f"{FLUNDERS}/a")
    yield Step("DELETE", f"{FLUNDERS}/a")
    yield Step("DELETE", FLUNDERS)
    yield Step("GET", FLUNDERS)
    yield Step("OPTIONS", FLUNDERS)
    yield Step("GET", f"{ROOT}/fischers")
    yield Step("GET", FLUNDERS, headers={"Impersonate-User": "jane", "Impersonate-Group": "nobody"})
    yield Step("GET", FLUNDERS, headers={"Impersonate-User": "jane", "Impersonate-Group": "system:masters"})
    yield Step("GET", FLUNDERS, headers={**_ALICE, "X-Remote-User": "admin", "X-Remote-Group": "system:masters"})


def of_faults(kinds: list[str]) -> Iterator[Step]:
    """Yield a request for each fault, whose answer is compared."""
    for kind in kinds:
        yield Step("GET", f"{FAULTS}/{kind}")
    for kind in ("echo", "hang-up", "garbage"):
        yield Step("POST", f"{FAULTS}/{kind}?b=2&a=1&b=1;2&c=%zz&d=x+y%20z&e", {"some": "body"})
    yield Step("GET", f"{FAULTS}/a%2Fb%20c//d/")
    yield Step("GET", f"{FAULTS}/echo/../other")
    yield Step("GET", f"/apis/{FAULTS_GROUP}/v1/")
    yield Step("GET", f"/apis/{FAULTS_GROUP}/v1", headers={"Accept": "text/html"})
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    for kind in ("echo", "hang-up", "garbage", "text"):
        yield Step("GET", f"{FAULTS}/{kind}", headers=upgrade)
