"""/statusz and /flagz: text, or objects of config.k8s.io if these are requested."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

STATUSZ = "g=config.k8s.io;v=v1beta1;as=Statusz"
FLAGZ = "g=config.k8s.io;v=v1beta1;as=Flagz"
PATHS = ["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"]


async def test_statusz_is_an_object_where_its_kind_is_asked_for(api: Any) -> None:
    answer = await api.get("/statusz", accept=f"application/json;{STATUSZ}")
    assert (answer.status, answer.headers["content-type"]) == (200, f"application/json;{STATUSZ}")
    body = answer.json()
    assert list(body) == [
        "kind",
        "apiVersion",
        "metadata",
        "startTime",
        "uptimeSeconds",
        "goVersion",
        "binaryVersion",
        "emulationVersion",
        "paths",
    ]
    assert (body["kind"], body["apiVersion"]) == ("Statusz", "config.k8s.io/v1beta1")
    assert body["metadata"] == {"name": "apiserver"}
    assert body["binaryVersion"].startswith("1.36.")
    assert body["paths"] == PATHS
    assert "warning" not in answer.headers


async def test_flagz_has_every_flag_in_yaml_too(api: Any) -> None:
    answer = await api.get("/flagz", accept=f"application/yaml;{FLAGZ}")
    assert answer.headers["content-type"] == f"application/yaml;{FLAGZ}"
    flags = yaml.safe_load(answer.body)["flags"]
    assert (flags["watch-cache"], flags["event-ttl"]) == ("true", "1h0m0s")


async def test_an_older_version_of_a_page_is_told_to_be_deprecated(api: Any) -> None:
    answer = await api.get("/statusz", accept=f"application/json;{STATUSZ}".replace("v1beta1", "v1alpha1"))
    assert answer.json()["apiVersion"] == "config.k8s.io/v1alpha1"
    assert answer.headers["warning"] == (
        '299 - "This version of the statusz endpoint is deprecated. Please use a newer version."'
    )
    assert (
        'apiserver_requested_deprecated_apis{group="config.k8s.io",version="v1alpha1",resource="statusz"'
        in (await api.get("/metrics")).body.decode()
    )


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; charset=utf-8"),
        ("*/*", "text/plain; charset=utf-8"),
        ("text/*", "text/plain; charset=utf-8"),
        ("application/json,text/plain", "text/plain; charset=utf-8"),
        (f"text/plain;q=0.5,application/json;{STATUSZ}", f"application/json;{STATUSZ}"),
        (f"*/*;{STATUSZ}", f"application/json;{STATUSZ}"),
        ("application/json", ""),
        ("application/json;as=Statusz", ""),
        (f"application/json;{STATUSZ}".replace("v1beta1", "v1"), ""),
        (f"application/cbor;{STATUSZ}", ""),
        (f"text/plain;{STATUSZ}", ""),
        (f"application/json;{FLAGZ}", ""),
    ],
)
async def test_the_form_of_a_page_is_negotiated(api: Any, accept: str, content_type: str) -> None:
    answer = await api.get("/statusz", accept=accept)
    if content_type:
        assert (answer.status, answer.headers["content-type"]) == (200, content_type)
    else:
        assert (answer.status, answer.json()["message"]) == (
            406,
            "only the following media types are accepted: application/json, application/yaml, text/plain",
        )


async def test_the_text_of_statusz_names_paths(api: Any) -> None:
    text = (await api.get("/statusz", accept="text/plain")).body.decode()
    assert text.splitlines()[-1] == f"Paths= {' '.join(PATHS)}"


async def test_the_index_names_what_kube_apiservers_names(api: Any) -> None:
    paths = (await api.get("/")).json()["paths"]
    assert {"/apis", "/apis/", "/flagz", "/openapi/v3", "/openapi/v3/", "/statusz"} <= {*paths}
    assert [path for path in paths if path.startswith("/debug")] == []
    assert (await api.get("/debug/pprof/")).status == 200
