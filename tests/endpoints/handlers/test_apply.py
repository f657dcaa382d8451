"""Server-side apply over the wire: refusals, created objects, ownership, and applies without effect."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def config_map(name: str = "a", **members: Any) -> dict[str, Any]:
    metadata = {"name": name, **members.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **members}


def deployment(name: str = "web", container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [container or {"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def owned(obj: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the sets of fields by manager and operation."""
    entries = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


class Applies:
    """Applies objects in the test's namespace."""

    def __init__(self, api: Any, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def path(self, plural: str, name: str, subresource: str = "") -> str:
        root = "/api/v1" if plural in ("configmaps", "services", "secrets", "pods") else "/apis/apps/v1"
        if plural == "horizontalpodautoscalers":
            root = "/apis/autoscaling/v1"
        return f"{root}/namespaces/{self.namespace}/{plural}/{name}{subresource}"

    async def __call__(
        self,
        body: Any,
        manager: str = "one",
        *,
        plural: str = "configmaps",
        name: str = "a",
        subresource: str = "",
        **query: str,
    ) -> Any:
        """Send an apply and return the answer; a body that is text is sent unchanged."""
        more = "".join(f"&{key}={value}" for key, value in query.items())
        target = f"{self.path(plural, name, subresource)}?fieldManager={manager}{more}"
        data = body.encode() if isinstance(body, str) else body
        return await self.api.request("PATCH", target, data, content_type=APPLY)

    async def made(self, body: Any, manager: str = "one", **more: Any) -> Any:
        """Send an apply that must succeed, and return the object."""
        answer = await self(body, manager, **more)
        assert answer.status in (200, 201), answer.body
        return answer.json()

    async def refused(self, code: int, message: str, body: Any, manager: str = "one", **more: Any) -> Any:
        """Send an apply that must fail, and return the Status."""
        answer = await self(body, manager, **more)
        status = answer.json()
        assert (answer.status, status["message"]) == (code, message)
        return status

    async def get(self, plural: str, name: str) -> Any:
        return (await self.api.get(self.path(plural, name))).json()

    async def merge(self, plural: str, name: str, body: Any, manager: str = "patcher", subresource: str = "") -> Any:
        target = f"{self.path(plural, name, subresource)}?fieldManager={manager}"
        answer = await self.api.request("PATCH", target, body, content_type=MERGE)
        assert answer.status == 200, answer.body
        return answer.json()


@pytest.fixture
def applies(api: Any, namespace: str) -> Applies:
    return Applies(api, namespace)


# Refusals


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "fieldManager: Required value: is required for apply patch"),
        ("?fieldManager=", "fieldManager: Required value: is required for apply patch"),
        (f"?fieldManager={'m' * 129}", "fieldManager: Too long: may not be more than 128 bytes"),
        ("?fieldManager=a%01", 'fieldManager: Invalid value: "a\\x01": invalid character U+0001 (at position 1)'),
        ("?fieldManager=m&dryRun=no", 'dryRun: Unsupported value: ["no"]: supported values: "All"'),
        (
            "?fieldManager=m&fieldValidation=x",
            'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"',
        ),
    ],
)
async def test_options_are_checked(applies: Applies, query: str, message: str) -> None:
    target = applies.path("configmaps", "a") + query
    answer = await applies.api.request("PATCH", target, config_map(), content_type=APPLY)
    assert answer.status == 422
    assert answer.json()["message"] == f'PatchOptions.meta.k8s.io "" is invalid: {message}'


async def test_force_is_for_applies_only(applies: Applies) -> None:
    target = applies.path("configmaps", "a") + "?force=true"
    answer = await applies.api.request("PATCH", target, {}, content_type=MERGE)
    assert answer.status == 422
    assert "force: Forbidden: may not be specified for non-apply patch" in answer.json()["message"]


async def test_cbor_is_refused(applies: Applies) -> None:
    target = applies.path("configmaps", "a") + "?fieldManager=m"
    answer = await applies.api.request("PATCH", target, b"\xa0", content_type="application/apply-patch+cbor")
    assert (answer.status, answer.json()["message"]) == (415, "415: Unsupported Media Type")


_CONVERTING = "error decoding YAML: error converting YAML to JSON:"
_UNMARSHALING = "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal"


@pytest.mark.parametrize(
    ("code", "body", "message"),
    [
        (400, "", "invalid object type: /, Kind="),
        (400, "{}", "invalid object type: /, Kind="),
        (400, "apiVersion: a/b/c\nkind: ConfigMap", "invalid object type: /, Kind="),
        (400, "apiVersion: [v1]\nkind: ConfigMap", "invalid object type: /, Kind=ConfigMap"),
        (
            400,
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},
            "invalid object type: /v1, Kind=Secret",
        ),
        (400, "[]", f"{_UNMARSHALING} array into Go value of type map[string]interface {{}}"),
        (400, "3", f"{_UNMARSHALING} number into Go value of type map[string]interface {{}}"),
        (400, "a: *x", f"{_CONVERTING} yaml: unknown anchor 'x' referenced"),
        (400, "? [a]\n: b", f'{_CONVERTING} yaml: invalid map key: []interface {{}}{{"a"}}'),
        (400, '{"a": .nan}', f"{_CONVERTING} json: unsupported value: NaN"),
        (400, r'{"a": "\/"}', f"{_CONVERTING} yaml: found unknown escape character"),
        (400, r'{"a": "\ud83d\ude00"}', f"{_CONVERTING} yaml: found invalid Unicode character escape code"),
        (400, config_map(metadata={"managedFields": []}), "metadata.managedFields must be nil"),
        (400, config_map(metadata={"managedFields": [{}]}), "metadata.managedFields must be nil"),
        (400, config_map("b"), "the name of the object (b) does not match the name on the URL (a)"),
        (
            400,
            config_map("b", metadata={"namespace": "other"}),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            400,
            {"apiVersion": "v1", "kind": "ConfigMap"},
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        (
            500,
            config_map(unknown=1),
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .unknown: field not declared in schema",
        ),
        (
            500,
            config_map(data={"n": 1e20}),
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.n: expected string, got "
            "&value.valueUnstructured{Value:1e+20}",
        ),
        (
            500,
            config_map(metadata={"creationTimestamp": "yesterday"}),
            "failed to convert new object (/a; /v1, Kind=ConfigMap) to proper version: unable to convert unstructured "
            'object to /v1, Kind=ConfigMap: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse '
            '"yesterday" as "2006"',
        ),
        (500, config_map(metadata={"resourceVersion": "x"}), 'strconv.ParseUint: parsing "x": invalid syntax'),
        (
            409,
            config_map(metadata={"uid": "u"}),
            'Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid u, '
            "and no existing object was found",
        ),
    ],
)
async def test_what_cannot_be_applied(applies: Applies, code: int, body: Any, message: str) -> None:
    await applies.refused(code, message, body)
    assert (await applies.get("configmaps", "a"))["reason"] == "NotFound"


async def test_a_stale_version_and_another_uid_are_refused(applies: Applies) -> None:
    await applies.made(config_map())
    message = (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to '
        "the latest version and try again"
    )
    await applies.refused(409, message, config_map(metadata={"resourceVersion": "1"}))
    message = 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "u": field is immutable'
    await applies.refused(422, message, config_map(metadata={"uid": "u"}))


async def test_no_namespace_no_object(api: Any) -> None:
    message = 'namespaces "nowhere" not found'
    await Applies(api, "nowhere").refused(404, message, config_map())


async def test_a_status_is_not_made(applies: Applies) -> None:
    message = 'deployments.apps "web" not found'
    await applies.refused(404, message, "{{{", plural="deployments", name="web", subresource="/status")
    await applies.refused(404, message, {}, plural="deployments", name="web", subresource="/scale")


# Bodies


async def test_yaml_and_json_say_the_same(applies: Applies) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: 'é'\n---\nkind: Other\n"
    made = await applies.made(text)
    again = await applies.made(config_map(data={"k": "é"}))
    assert made == again


@pytest.mark.parametrize(
    "body",
    [
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: v\n  k: w\n",
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},\n\n\n\n"data": {"k": "v", "k": "w"}}',
    ],
)
async def test_keys_given_twice_are_told(applies: Applies, body: str) -> None:
    text = 'line 5: key "k" already set in map'
    line = text.replace("5", "6") if body.startswith("apiVersion") else text
    message = f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {line}"
    await applies.refused(400, message, body, fieldValidation="Strict")
    answer = await applies(body)
    assert answer.headers.get_all("warning") == [f'299 - "{line}"'.replace('key "k"', 'key \\"k\\"')]
    assert answer.json()["data"] == {"k": "w"}
    answer = await applies(body, fieldValidation="Ignore")
    assert answer.headers.get_all("warning") == []


async def test_nulls_and_odd_numbers_are_taken_as_upstream_takes_them(applies: Applies) -> None:
    made = await applies.made(config_map(data={"k": None}, metadata={"labels": None}))
    assert made["data"] == {"k": ""}
    assert owned(made) == {("one", "Apply"): {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {}}}}
    port = {"name": "c", "image": "i", "ports": [{"containerPort": 2**32 + 80}]}
    made = await applies.made(deployment(container=port), plural="deployments", name="web")
    assert made["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


async def test_a_large_configuration_is_applied_like_a_small_one(applies: Applies) -> None:
    data = {f"key-{number}": "x" * 50 for number in range(2000)}
    made = await applies.made(config_map(data=data))
    assert len(made["data"]) == 2000
    again = await applies.made(config_map(data=data))
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    less = await applies.made(config_map(data={"key-7": "y"}))
    assert less["data"] == {"key-7": "y"}


# Making objects


async def test_an_apply_makes_what_is_not_there(applies: Applies) -> None:
    answer = await applies(deployment(), plural="deployments", name="web")
    assert answer.status == 201
    made = answer.json()
    assert made["spec"]["replicas"] == 1  # defaults, which nobody owns
    assert made["metadata"]["generation"] == 1
    containers: dict[str, Any] = {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}
    spec = {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": containers}}
    assert owned(made) == {("one", "Apply"): {"f:spec": {"f:selector": {}, "f:template": spec}}}


async def test_a_version_given_for_what_is_not_there_says_nothing(applies: Applies) -> None:
    assert (await applies(config_map(metadata={"resourceVersion": "7"}))).status == 201


async def test_what_is_made_is_validated(applies: Applies) -> None:
    answer = await applies(config_map(data={"/": "x"}))
    assert (answer.status, answer.json()["details"]["causes"][0]["field"]) == (422, "data[/]")


async def test_a_dry_run_makes_nothing(applies: Applies) -> None:
    answer = await applies(config_map(data={"k": "v"}), dryRun="All")
    assert answer.status == 201
    assert "resourceVersion" not in answer.json()["metadata"]
    assert (await applies.get("configmaps", "a"))["reason"] == "NotFound"


async def test_a_dry_run_changes_nothing(applies: Applies) -> None:
    before = await applies.made(config_map(data={"k": "v"}))
    shown = await applies.made(config_map(data={"k": "w"}), dryRun="All")
    assert shown["data"] == {"k": "w"}
    assert await applies.get("configmaps", "a") == before


async def test_a_name_generator_is_no_name(applies: Applies) -> None:
    made = await applies.made(config_map(metadata={"generateName": "b-"}))
    assert (made["metadata"]["name"], made["metadata"]["generateName"]) == ("a", "b-")


async def test_making_needs_the_right_to_create(api: Any, applies: Applies) -> None:
    namespace = applies.namespace
    root = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}
    await api.post(f"{root}/roles", {"metadata": {"name": "patcher"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patcher"}
    subjects = [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}]
    binding = {"metadata": {"name": "patcher"}, "roleRef": reference, "subjects": subjects}
    assert (await api.post(f"{root}/rolebindings", binding)).status == 201
    alice = Applies(api.as_user("alice"), namespace)
    message = (
        'configmaps "a" is forbidden: User "alice" cannot create resource "configmaps" in API group "" in the '
        f'namespace "{namespace}"'
    )
    await alice.refused(403, message, config_map())
    answer = await alice(config_map(data={"/": "x"}))
    assert answer.status == 422  # what is wrong with the object is told first
    await applies.made(config_map())
    assert (await alice.made(config_map(data={"k": "v"}), "two"))["data"] == {"k": "v"}


# Ownership


async def test_what_changes_nothing_writes_nothing(applies: Applies) -> None:
    first = await applies.made(deployment(replicas=2), plural="deployments", name="web")
    answer = await applies(deployment(replicas=2), plural="deployments", name="web")
    assert (answer.status, answer.json()) == (200, first)


async def test_conflicts_name_every_owner(applies: Applies) -> None:
    await applies.made(config_map(data={"k": "1", "l": "1"}))
    await applies.merge("configmaps", "a", {"data": {"l": "2", "m": "2"}}, "mender")
    message = (
        'Apply failed with 3 conflicts: conflicts with "mender" using v1:\n- .data.l\n- .data.m\n'
        'conflicts with "one":\n- .data.k'
    )
    status = await applies.refused(409, message, config_map(data={"k": "3", "l": "3", "m": "3"}), "two")
    assert status["reason"] == "Conflict"
    assert [(cause["message"], cause["field"]) for cause in status["details"]["causes"]] == [
        ('conflict with "mender" using v1', ".data.l"),
        ('conflict with "mender" using v1', ".data.m"),
        ('conflict with "one"', ".data.k"),
    ]
    assert {cause["reason"] for cause in status["details"]["causes"]} == {"FieldManagerConflict"}


async def test_force_takes_over(applies: Applies) -> None:
    await applies.made(config_map(data={"k": "1", "l": "1"}))
    forced = await applies.made(config_map(data={"k": "2"}), "two", force="true")
    assert forced["data"] == {"k": "2", "l": "1"}
    assert owned(forced) == {("one", "Apply"): {"f:data": {"f:l": {}}}, ("two", "Apply"): {"f:data": {"f:k": {}}}}


async def test_what_is_shared_stays_until_nobody_says_it(applies: Applies) -> None:
    await applies.made(config_map(data={"k": "1"}))
    shared = await applies.made(config_map(data={"k": "1"}), "two")
    assert len(owned(shared)) == 2
    left = await applies.made(config_map())
    assert left["data"] == {"k": "1"}
    assert list(owned(left)) == [("two", "Apply")]
    gone = await applies.made(config_map(), "two")
    assert "data" not in gone
    assert "managedFields" not in gone["metadata"]


async def test_an_update_by_the_same_name_is_another_owner(applies: Applies) -> None:
    await applies.made(config_map(data={"k": "1"}))
    await applies.merge("configmaps", "a", {"data": {"k": "2"}}, "one")
    message = 'Apply failed with 1 conflict: conflict with "one" using v1: .data.k'
    await applies.refused(409, message, config_map(data={"k": "1"}))


async def test_the_first_apply_to_what_has_no_owners(api: Any, applies: Applies) -> None:
    await applies.made(config_map(data={"k": "1"}))
    emptied = await applies.merge("configmaps", "a", {"metadata": {"managedFields": []}})
    assert "managedFields" not in emptied["metadata"]
    made = await applies.made(config_map(data={"l": "1"}))
    assert owned(made) == {
        ("one", "Apply"): {"f:data": {"f:l": {}}},
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:k": {}}},
    }


@pytest.mark.parametrize("sent", [[], [{}]])
@pytest.mark.parametrize("how", ["put", "yaml", "merge", "json"])
async def test_an_empty_list_of_managers_forgets_them(api: Any, applies: Applies, sent: Any, how: str) -> None:
    await applies.made(config_map(data={"k": "1"}))
    target = applies.path("configmaps", "a")
    body: Any = config_map(data={"k": "2"}, metadata={"managedFields": sent})
    if how == "put":
        answer = await api.put(target, body)
    elif how == "yaml":
        answer = await api.request("PUT", target, json.dumps(body, indent=1).encode(), content_type="application/yaml")
    elif how == "merge":
        answer = await api.request("PATCH", target, {"metadata": {"managedFields": sent}}, content_type=MERGE)
    else:
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": sent}]
        answer = await api.request("PATCH", target, patch, content_type="application/json-patch+json")
    assert answer.status == 200, answer.body
    assert "managedFields" not in answer.json()["metadata"]


# Client-side apply before


async def test_kubectl_takes_over_what_it_applied_on_the_clients_side(api: Any, applies: Applies) -> None:
    text = json.dumps(config_map(data={"k": "1", "l": "1"})) + "\n"
    body = config_map(data={"k": "1", "l": "2"}, metadata={"annotations": {LAST_APPLIED: text}})
    target = applies.path("configmaps", "a").rpartition("/")[0] + "?fieldManager=kubectl-client-side-apply"
    assert (await api.post(target, body)).status == 201
    message = 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.k'
    await applies.refused(409, message, config_map(data={"k": "3"}))
    message = 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.l'
    await applies.refused(409, message, config_map(data={"k": "3", "l": "3"}), "kubectl")
    made = await applies.made(config_map(data={"k": "3"}), "kubectl")
    assert made["data"] == {"k": "3", "l": "2"}
    kept = json.loads(made["metadata"]["annotations"][LAST_APPLIED])
    assert kept == config_map(data={"k": "3"})


# Subresources


async def test_status_and_spec_have_owners_of_their_own(applies: Applies) -> None:
    await applies.made(deployment(), plural="deployments", name="web")
    status = {**deployment(replicas=9), "status": {"observedGeneration": 1}}
    applied = await applies.made(status, "controller", plural="deployments", name="web", subresource="/status")
    assert (applied["spec"]["replicas"], applied["status"]) == (1, {"observedGeneration": 1})
    entry = next(each for each in applied["metadata"]["managedFields"] if each["manager"] == "controller")
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:observedGeneration": {}}})
    other = await applies.made({**deployment(), "status": {"replicas": 3}}, plural="deployments", name="web")
    assert other["status"] == {"observedGeneration": 1}
    assert "f:status" not in owned(other)["one", "Apply"]


def scale(replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas},
    }


async def test_scale_and_parent_share_the_owners_of_replicas(applies: Applies) -> None:
    await applies.made(deployment(replicas=2), plural="deployments", name="web")
    where = {"plural": "deployments", "name": "web"}
    message = 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    await applies.refused(409, message, scale(3), "scaler", subresource="/scale", **where)
    scaled = await applies.made(scale(3), "scaler", subresource="/scale", force="true", **where)
    assert (scaled["kind"], scaled["spec"]) == ("Scale", {"replicas": 3})
    parent = await applies.get("deployments", "web")
    entry = next(each for each in parent["metadata"]["managedFields"] if each["manager"] == "scaler")
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert (entry["apiVersion"], entry["subresource"]) == ("apps/v1", "scale")
    assert "f:replicas" not in owned(parent)["one", "Apply"]["f:spec"]
    message = 'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale": .spec.replicas'
    await applies.refused(409, message, deployment(replicas=4), **where)
    before = parent["metadata"]["resourceVersion"]
    again = await applies.made(scale(3), "scaler", subresource="/scale", **where)
    assert again["metadata"]["resourceVersion"] == before


async def test_a_scale_of_another_kind_is_refused(applies: Applies) -> None:
    await applies.made(deployment(), plural="deployments", name="web")
    where = {"plural": "deployments", "name": "web", "subresource": "/scale"}
    await applies.refused(400, "invalid object type: apps/v1, Kind=Deployment", deployment(), **where)


async def test_a_service_made_through_its_status_has_no_address(applies: Applies) -> None:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    made = await applies.made(body, plural="services", name="s", subresource="/status")
    assert "clusterIP" not in made["spec"]


# Versions


async def test_what_is_pruned_was_said_in_another_version(api: Any, applies: Applies) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    v1: dict[str, Any] = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }
    v2 = {**v1, "apiVersion": "autoscaling/v2", "spec": {**v1["spec"], "minReplicas": 2}}
    path = applies.path("horizontalpodautoscalers", "a") + "?fieldManager=one"
    answer = await api.request("PATCH", path.replace("/v1/", "/v2/", 1), v2, content_type=APPLY)
    assert (answer.status, answer.json()["spec"]["minReplicas"]) == (201, 2)
    answer = await api.request("PATCH", path, v1, content_type=APPLY)
    assert (answer.status, answer.json()["spec"]["minReplicas"]) == (200, 1)
    [entry] = answer.json()["metadata"]["managedFields"]
    assert (entry["apiVersion"], sorted(entry["fieldsV1"]["f:spec"])) == (
        "autoscaling/v1",
        ["f:maxReplicas", "f:scaleTargetRef"],
    )


# Several at once


async def test_applies_at_the_same_time_all_count(applies: Applies) -> None:
    async def one(number: int) -> None:
        await applies.made(config_map(data={f"k{number}": "v"}), f"m{number}")

    await asyncio.gather(*map(one, range(12)))
    found = await applies.get("configmaps", "a")
    assert sorted(found["data"]) == sorted(f"k{number}" for number in range(12))
    assert len(owned(found)) == 12


async def test_managers_that_say_different_things_do_not_disturb_each_other(applies: Applies) -> None:
    parts = {"one": {"data": {"k": "1"}}, "two": {"data": {"l": "2"}}, "three": {"metadata": {"labels": {"a": "b"}}}}
    seen = []
    for number, order in enumerate(itertools.permutations(parts)):
        name = f"order-{number}"
        for manager in order:
            await applies.made(config_map(name, **json.loads(json.dumps(parts[manager]))), manager, name=name)
        found = await applies.get("configmaps", name)
        seen.append((found["data"], found["metadata"]["labels"], owned(found)))
    assert all(each == seen[0] for each in seen)
