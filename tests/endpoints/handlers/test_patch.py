"""PATCH over the wire: refusals by type of patch, warnings, and ownership of changes."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.endpoints.patches import patch_media_type
from steersman.endpoints.request import Request
from steersman.kinds.open import OpenKind
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer
from steersman.net.message import Request as HttpRequest
from steersman.testing import Client

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TYPES = (JSON, MERGE, STRATEGIC)
OPEN = OpenKind(GroupVersionKind("e.x", "v1", "Foo"))
UNDECODABLE = ' "" is invalid: patch: Invalid value: '


class Patches:
    """Patches one object in the test's namespace."""

    def __init__(self, api: Any, target: str) -> None:
        self.api = api
        self.target = target

    async def __call__(self, body: Any, media: str = STRATEGIC, *, subresource: str = "", **query: str) -> Any:
        """Send a patch and return the answer; a body that is text is sent unchanged."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        target = f"{self.target}{subresource}?{'&'.join(f'{key}={value}' for key, value in query.items())}"
        return await self.api.request("PATCH", target, data, content_type=media)

    async def made(self, body: Any, media: str = STRATEGIC, **more: Any) -> Any:
        """Send a patch that must succeed, and return the object."""
        answer = await self(body, media, **more)
        assert answer.status == 200, answer.body
        return answer.json()

    async def refused(self, code: int, message: str, body: Any, media: str = STRATEGIC, **more: Any) -> Any:
        """Send a patch that must fail, and return the Status."""
        answer = await self(body, media, **more)
        status = answer.json()
        assert (answer.status, status["message"]) == (code, message)
        return status

    async def current(self) -> Any:
        return (await self.api.get(self.target)).json()


@pytest.fixture
async def config_map(api: Client, namespace: str) -> Patches:
    target = f"/api/v1/namespaces/{namespace}/configmaps"
    made = await api.post(target, {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}})
    assert made.status == 201
    return Patches(api, f"{target}/a")


@pytest.fixture
async def deployment(api: Client, namespace: str) -> Patches:
    target = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {
        "metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{"name": "one", "image": "one"}, {"name": "two", "image": "two"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    assert (await api.post(target, {"metadata": {"name": "d"}, "spec": spec})).status == 201
    return Patches(api, f"{target}/d")


def warnings(answer: Any) -> list[str]:
    """Return the texts of the Warning headers."""
    values = answer.headers.get_all("warning")
    return [value.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for value in values]


# Media types


@pytest.mark.parametrize("media", ["application/json", "text/plain", "", "application/apply-patch+cbor"])
async def test_other_media_types_are_refused(config_map: Patches, media: str) -> None:
    status = await config_map.refused(415, "415: Unsupported Media Type", {}, media)
    assert (status["reason"], status["details"]) == ("UnsupportedMediaType", {})


@pytest.mark.parametrize("media", TYPES)
async def test_parameters_of_the_media_type_do_not_matter(config_map: Patches, media: Any) -> None:
    assert (await config_map([] if media == JSON else {}, f"{media}; charset=utf-8")).status == 200


def test_open_kinds_take_no_strategic_merge_patches() -> None:
    scope: Any = SimpleNamespace(kind=OPEN)
    with pytest.raises(StatusError) as caught:
        patch_media_type(scope, a_request(STRATEGIC))
    assert (caught.value.code, caught.value.message) == (
        415,
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )
    assert patch_media_type(scope, a_request(MERGE)) == MERGE


def a_request(media: str) -> Request:
    """Return a request with a body of this type."""
    return Request(HttpRequest("PATCH", "/", "", Headers.from_pairs([("content-type", media)]), EMPTY_BODY, Peer()))


# Bodies


@pytest.mark.parametrize(
    ("media", "validation", "body", "message"),
    [
        (STRATEGIC, "Warn", "", "unexpected end of JSON input"),
        (STRATEGIC, "Ignore", "[1]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (STRATEGIC, "Warn", '{"a":1e400}', "json: cannot unmarshal number 1e400 into Go value of type float64"),
        (MERGE, "Warn", "{", "error decoding patch: unexpected end of JSON input"),
        (MERGE, "Ignore", "{", "Invalid JSON Patch"),
        (
            MERGE,
            "Warn",
            "[1]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (JSON, "Warn", "[", "error decoding patch: unexpected end of JSON input"),
        (JSON, "Ignore", "[", "unexpected end of JSON input"),
        (
            JSON,
            "Warn",
            '[{"op":"add","path":"/a","value":[1e309]}]',
            "error decoding patch: json: cannot unmarshal number 1e309 into Go struct field jsonPatchOp.value of type "
            "float64",
        ),
        (JSON, "Ignore", "{}", "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
    ],
)
async def test_what_is_no_patch_is_refused(
    config_map: Patches, media: Any, validation: str, body: str, message: str
) -> None:
    await config_map.refused(400, message, body, media, fieldValidation=validation)


@pytest.mark.parametrize("media", TYPES)
async def test_a_body_is_looked_at_only_if_there_is_an_object(config_map: Patches, media: Any) -> None:
    config_map.target += "-not-there"
    assert (await config_map("{", media)).status == 404


@pytest.mark.parametrize("media", TYPES)
async def test_a_body_nested_too_deeply_is_refused(config_map: Patches, media: Any) -> None:
    deep = "[" * 50_000 + "]" * 50_000
    assert (await config_map(f'{{"data":{deep}}}' if media != JSON else deep, media)).status == 400
    nested = '{"a":' * 700 + "1" + "}" * 700
    body = f'[{{"op":"add","path":"/data","value":{nested}}}]' if media == JSON else f'{{"data":{nested}}}'
    assert (await config_map(body, media)).status in (400, 422)


async def test_a_large_patch_is_applied(config_map: Patches) -> None:
    data = {f"key-{number}": "x" * 100 for number in range(2000)}
    assert len((await config_map.made({"data": data}))["data"]) == 2001


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
async def test_an_empty_patch_writes_nothing(config_map: Patches, media: Any) -> None:
    assert await config_map.made({}, media) == await config_map.current()


async def test_null_is_an_empty_strategic_patch(config_map: Patches) -> None:
    assert await config_map.made("null") == await config_map.current()


# Unknown and repeated fields


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
async def test_unknown_and_repeated_fields_are_warned_of(config_map: Patches, media: Any) -> None:
    answer = await config_map('{"bogus":1,"bogus":2,"metadata":{"zzz":1}}', media)
    assert answer.status == 200
    assert warnings(answer) == ['duplicate field "bogus"', 'unknown field "bogus"', 'unknown field "metadata.zzz"']


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
async def test_unknown_and_repeated_fields_can_be_ignored(config_map: Patches, media: Any) -> None:
    answer = await config_map('{"data":{"a":"1","a":"2"},"bogus":1}', media, fieldValidation="Ignore")
    assert (answer.json()["data"], warnings(answer)) == ({"a": "2", "k": "v"}, [])


async def test_a_strict_strategic_patch_shows_what_it_said(config_map: Patches) -> None:
    text = 'strict decoding error: duplicate field "data.a", unknown field "bogus"'
    status = await config_map.refused(
        422,
        f'{UNDECODABLE}"map[bogus:map[x:1] data:map[a:2]]": {text}',
        '{"data":{"a":"1","a":"2"},"bogus":{"x":1}}',
        fieldValidation="Strict",
    )
    assert status["reason"] == "Invalid"
    assert [(each["field"], each["reason"]) for each in status["details"]["causes"]] == [("patch", "FieldValueInvalid")]


async def test_a_strict_json_patch_shows_the_whole_object_and_names_its_own_fields(config_map: Patches) -> None:
    body = '[{"op":"add","path":"/data/a","value":"x","foo":1,"path":"/data/b"},{"op":"add","path":"/zz","value":7}]'
    status = (await config_map(body, JSON, fieldValidation="Strict")).json()
    assert status["message"].startswith(f'{UNDECODABLE}"{{\\"apiVersion\\":\\"v1\\",\\"data\\":{{\\"b\\":')
    assert status["message"].endswith(
        'strict decoding error: json patch unknown field "[0].foo", json patch duplicate field "[0].path", '
        'unknown field "zz"'
    )
    assert (await config_map.current())["data"] == {"k": "v"}


# Results


@pytest.mark.parametrize("media", TYPES)
async def test_names_may_not_contradict_the_path(config_map: Patches, media: Any) -> None:
    def body(name: str, value: Any) -> Any:
        if media == JSON:
            return [{"op": "add", "path": f"/metadata/{name}", "value": value}]
        return {"metadata": {name: value}}

    await config_map.refused(
        400, "the name of the object (b) does not match the name on the URL (a)", body("name", "b"), media
    )
    await config_map.refused(
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
        body("namespace", "other"),
        media,
    )
    await config_map.refused(
        422, 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "u": field is immutable', body("uid", "u"), media
    )
    conflict = await config_map(body("resourceVersion", "1"), media)
    assert (conflict.status, conflict.json()["reason"]) == (409, "Conflict")


async def test_a_value_that_does_not_fit_is_told_with_the_patch(deployment: Patches) -> None:
    await deployment.refused(
        422, f'{UNDECODABLE}"map[spec:map[replicas:many]]": unrecognized type: int32', {"spec": {"replicas": "many"}}
    )


async def test_an_error_shows_no_directives_that_were_followed(deployment: Patches) -> None:
    containers = {"$setElementOrder/containers": [{"name": "two"}], "containers": [{"name": "two", "image": "x"}]}
    patch = {"spec": {"paused": "x", "strategy": {"$retainKeys": ["type"]}, "template": {"spec": containers}}}
    await deployment.refused(
        422,
        f'{UNDECODABLE}"map[spec:map[paused:x strategy:map[] template:map[spec:map[]]]]": unrecognized type: bool',
        patch,
    )


async def test_bad_directives_are_refused_as_upstream_does(deployment: Patches) -> None:
    status = await deployment.refused(
        500, "unknown patch type: explode in map: map[$patch:explode]", {"spec": {"strategy": {"$patch": "explode"}}}
    )
    assert "reason" not in status
    await deployment.refused(400, "invalid patch format of retainKeys", {"spec": {"$retainKeys": "x"}})


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"kind": "Foo"}, 'no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'),
        ({"kind": "Pod"}, "converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
        ({"kind": "Secret"}, "illegal base64 data at input byte 0"),
        (
            {"kind": "Deployment", "apiVersion": None},
            'no kind "Deployment" is registered for the internal version of group "" in scheme '
            '"pkg/runtime/scheme.go:111"',
        ),
        (
            {"kind": "Secret", "apiVersion": None},
            "converting (core.Secret) to (core.ConfigMap): unknown conversion",
        ),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        (
            {"apiVersion": 7},
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field "
            ".apiVersion of type string",
        ),
    ],
)
async def test_a_merge_patch_that_makes_another_kind_is_refused(
    config_map: Patches, patch: dict[str, Any], why: str
) -> None:
    status = (await config_map(patch, MERGE)).json()
    assert status["code"] == 422
    assert status["message"].endswith(f": {why}")


async def test_a_merge_patch_without_a_version_loses_all_fields(config_map: Patches) -> None:
    answer = await config_map({"apiVersion": None}, MERGE)
    assert warnings(answer) == ['unknown field "data"', 'unknown field "metadata"']
    assert answer.json()["message"] == (
        "the name of the object (a based on URL) was undeterminable: name must be provided"
    )


async def test_a_retired_version_is_read_as_the_one_served(deployment: Patches) -> None:
    found = await deployment.made({"apiVersion": "apps/v1beta1", "spec": {"replicas": 4}}, MERGE)
    assert (found["apiVersion"], found["spec"]["replicas"]) == ("apps/v1", 4)


async def test_a_merge_patch_may_be_in_another_version(api: Client, namespace: str) -> None:
    root = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    await api.post(root, {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}})
    patch = {"apiVersion": "autoscaling/v1", "spec": {"targetCPUUtilizationPercentage": 40}}
    found = await Patches(api, f"{root}/h").made(patch, MERGE)
    assert found["apiVersion"] == "autoscaling/v2"
    assert found["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 40}


async def test_kind_and_version_of_a_strategic_patch_do_not_matter(config_map: Patches) -> None:
    found = await config_map.made({"kind": "Pod", "apiVersion": "v9", "data": {"a": "b"}})
    assert (found["kind"], found["apiVersion"], found["data"]) == ("ConfigMap", "v1", {"a": "b", "k": "v"})


# Writing


async def test_lists_are_merged_by_key_and_owned_by_who_changed_them(deployment: Patches) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "two:2"}]}}}}
    found = await deployment.made(patch, fieldManager="patcher")
    assert [each["image"] for each in found["spec"]["template"]["spec"]["containers"]] == ["one", "two:2"]
    assert found["metadata"]["generation"] == 2
    (entry,) = [each for each in found["metadata"]["managedFields"] if each["manager"] == "patcher"]
    assert entry["operation"] == "Update"
    assert entry["fieldsV1"] == {
        "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"two"}': {"f:image": {}}}}}}
    }


@pytest.mark.parametrize("media", [MERGE, STRATEGIC])
async def test_an_empty_list_of_managers_forgets_them(config_map: Patches, media: Any) -> None:
    assert "managedFields" in (await config_map.current())["metadata"]
    assert "managedFields" not in (await config_map.made({"metadata": {"managedFields": []}}, media))["metadata"]


async def test_a_dry_run_writes_nothing(deployment: Patches) -> None:
    before = await deployment.current()
    found = await deployment.made({"spec": {"replicas": 7}}, dryRun="All")
    assert found["spec"]["replicas"] == 7
    assert await deployment.current() == before


async def test_patches_of_subresources_touch_only_their_part(deployment: Patches) -> None:
    scale = await deployment.made({"spec": {"replicas": 3}}, subresource="/scale")
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 3)
    condition = {"type": "Available", "status": "True"}
    patch = {"spec": {"replicas": 9}, "status": {"conditions": [condition]}}
    await deployment.made(patch, subresource="/status")
    await deployment.made({"status": {"conditions": [{"type": "Other", "status": "False"}]}}, subresource="/status")
    found = await deployment.current()
    assert found["spec"]["replicas"] == 3
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]} == {
        "Available": "True",
        "Other": "False",
    }


async def test_an_ephemeral_container_is_added(api: Client, namespace: str) -> None:
    await api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    root = f"/api/v1/namespaces/{namespace}/pods"
    await api.post(root, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    patch = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "tool"}]}}
    found = await Patches(api, f"{root}/p").made(patch, subresource="/ephemeralcontainers")
    assert [each["name"] for each in found["spec"]["ephemeralContainers"]] == ["debug"]


async def test_a_controller_revision_takes_no_patch(api: Client, namespace: str) -> None:
    root = f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    await api.post(root, {"metadata": {"name": "a"}, "revision": 1, "data": {"a": "b"}})
    await Patches(api, f"{root}/a").refused(
        422,
        'ControllerRevision.apps "a" is invalid: data: Invalid value: {"a":"b"}: field is immutable',
        {"metadata": {"labels": {"x": "y"}}},
    )


@pytest.mark.parametrize("media", TYPES)
async def test_patches_at_the_same_time_all_go_through(config_map: Patches, media: Any) -> None:
    def body(number: int) -> Any:
        if media == JSON:
            return [{"op": "add", "path": f"/data/k{number}", "value": "x"}]
        return {"data": {f"k{number}": "x"}}

    answers = await asyncio.gather(*(config_map(body(number), media) for number in range(20)))
    assert [each.status for each in answers] == [200] * 20
    assert len((await config_map.current())["data"]) == 21


async def test_patches_of_one_version_at_the_same_time_go_through_once(config_map: Patches) -> None:
    version = (await config_map.current())["metadata"]["resourceVersion"]
    patches = [{"metadata": {"resourceVersion": version}, "data": {"k": str(number)}} for number in range(10)]
    answers = await asyncio.gather(*(config_map(each) for each in patches))
    assert sorted(each.status for each in answers) == [200] + [409] * 9


async def test_scales_patched_at_the_same_time_all_go_through(deployment: Patches) -> None:
    patches = [deployment({"spec": {"replicas": number}}, subresource="/scale") for number in range(2, 12)]
    assert [each.status for each in await asyncio.gather(*patches)] == [200] * 10


async def test_a_small_patch_may_make_a_large_object(config_map: Patches) -> None:
    copies = [{"op": "copy", "from": "/data/long", "path": f"/data/{number}"} for number in range(200)]
    made = await config_map.made([{"op": "add", "path": "/data/long", "value": "x" * 1000}, *copies], JSON)
    assert made["data"] == {"k": "v", "long": "x" * 1000} | {str(number): "x" * 1000 for number in range(200)}


async def test_a_small_patch_of_a_subresource_may_copy_much(deployment: Patches) -> None:
    copies = [
        {"op": "copy", "from": "/metadata/annotations/a", "path": f"/metadata/annotations/a{each}"}
        for each in range(200)
    ]
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}, *copies]
    assert (await deployment(patch, JSON, subresource="/scale")).status == 200
