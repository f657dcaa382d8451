"""Surprising behaviour of kube-apiserver with custom resources, found by `tools/differential`."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from tests.apiextensions.cluster import DEFINITIONS, GROUP, Cluster, condition, definition, version

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
APPLY = "application/apply-patch+yaml"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def spec(**properties: Any) -> dict[str, Any]:
    return schema(spec=schema(**properties), status=schema(replicas=NUMBER))


async def apply(cluster: Cluster, body: dict[str, Any], version: str = "v1", manager: str = "one") -> Any:
    whole = {"apiVersion": f"{GROUP}/{version}", "kind": "Foo", "metadata": {"name": "x"}, **body}
    path = f"{cluster.path(version)}/x?fieldManager={manager}"
    return await cluster.client.patch(path, whole, APPLY)


async def test_what_is_below_an_object_is_said_to_be_deprecated_where_there_is_no_such_thing(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", deprecated=True, deprecationWarning="old")))
    answer = await cluster.client.get(f"{cluster.path()}/x/other")
    assert answer.status == 404
    assert answer.headers["warning"] == '299 - "old"'


async def test_words_of_a_definition_name_no_release_in_which_it_is_removed(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", deprecated=True, deprecationWarning="old, unavailable in v1.99+")))
    assert (await cluster.client.get(cluster.path())).status == 200
    lines = (await cluster.client.get("/metrics")).body.decode().splitlines()
    [told] = [line for line in lines if line.startswith("apiserver_requested_deprecated_apis{") and GROUP in line]
    assert told.endswith('removed_release=""} 1')


async def test_nulls_that_are_applied_are_judged(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", spec(a=TEXT, b={**NUMBER, "default": 1}))))
    refused = await apply(cluster, {"spec": {"a": None, "b": None}})
    assert refused.status == 422
    [cause] = refused.json()["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueTypeInvalid", "spec.a")
    made = (await apply(cluster, {"spec": {"b": None}})).json()
    assert made["spec"] == {"b": 1}


async def test_a_null_that_is_applied_where_any_type_goes_is_not_kept(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", spec(a={"x-kubernetes-preserve-unknown-fields": True}))))
    assert (await apply(cluster, {"spec": {"a": None}})).json()["spec"] == {}
    assert (await cluster.client.get(f"{cluster.path()}/x")).json()["spec"] == {}


async def test_what_is_applied_in_an_embedded_resource_and_is_not_known_is_not_kept(cluster: Cluster) -> None:
    embedded = {**schema(metadata={"type": "object"}), "x-kubernetes-embedded-resource": True}
    open_spec = {**schema(a=embedded), "x-kubernetes-preserve-unknown-fields": True}
    await cluster.define(definition(version("v1", schema(spec=open_spec))))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "y"}}
    answer = await apply(cluster, {"spec": {"a": {**pod, "spec": {"a": 1}}}})
    assert answer.status == 201, answer.body
    made = answer.json()
    assert made["spec"] == {"a": pod}
    assert (await cluster.client.get(f"{cluster.path()}/x")).json()["spec"] == {"a": pod}


async def test_true_is_not_one(cluster: Cluster) -> None:
    await cluster.define(definition())
    made = (await cluster.create({"metadata": {"name": "x"}, "spec": {"a": True, "b": [0]}})).json()
    answer = await cluster.client.patch(f"{cluster.path()}/x?fieldManager=two", {"spec": {"a": 1, "b": [False]}})
    changed = answer.json()
    assert (changed["spec"], changed["metadata"]["generation"]) == ({"a": 1, "b": [False]}, 2)
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    owned = {each["manager"]: each["fieldsV1"] for each in changed["metadata"]["managedFields"]}
    assert owned["two"] == {"f:spec": {"f:a": {}, "f:b": {}}}
    applied = await apply(cluster, {"spec": {"a": True}}, manager="three")
    assert applied.status == 409


async def test_owners_are_forgotten_with_a_status_of_another_type_that_is_thrown_away(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", spec(a=TEXT), subresources={"status": {}})))
    made = (await cluster.create({"metadata": {"name": "x"}, "spec": {"a": "b"}, "status": {"replicas": "c"}})).json()
    assert "managedFields" not in made["metadata"]
    made = (await cluster.create({"metadata": {"name": "y"}, "spec": {"a": "b"}, "status": {"replicas": 1}})).json()
    assert len(made["metadata"]["managedFields"]) == 1


async def test_owners_are_forgotten_where_one_wrote_in_a_version_that_does_not_know_all(cluster: Cluster) -> None:
    versions = version("v1", spec(a=TEXT, b=TEXT)), version("v2", spec(a=TEXT), storage=False)
    await cluster.define(definition(*versions))
    await cluster.create({"metadata": {"name": "x"}, "spec": {"a": "b"}}, "v2")
    refused = await apply(cluster, {"spec": {"b": "d"}}, manager="two")
    assert refused.status == 500
    assert refused.json()["message"] == "failed to convert new object: .spec.b: field not declared in schema"
    changed = await cluster.client.patch(f"{cluster.path()}/x", {"spec": {"b": "c"}})
    assert "managedFields" not in changed.json()["metadata"]


async def test_a_status_is_owned_in_a_version_that_does_not_write_it_apart(cluster: Cluster) -> None:
    apart = version("v1", spec(), subresources={"status": {}})
    await cluster.define(definition(apart, version("v2", spec(), storage=False)))
    made = (await cluster.create({"metadata": {"name": "x"}, "status": {"replicas": 1}}, "v2")).json()
    assert made["status"] == {"replicas": 1}
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:status": {".": {}, "f:replicas": {}}}
    made = (await cluster.create({"metadata": {"name": "y"}, "status": {"replicas": 1}})).json()
    assert "status" not in made
    assert "managedFields" not in made["metadata"]


async def test_who_writes_a_status_in_a_version_that_alone_has_it_apart_owns_no_more(cluster: Cluster) -> None:
    apart = version("v2", spec(a=TEXT), storage=False, subresources={"status": {}})
    await cluster.define(definition(version("v1", spec(a=TEXT)), apart))
    await cluster.create({"metadata": {"name": "x"}, "spec": {"a": "b"}})
    path = f"{cluster.path('v2')}/x/status?fieldManager=two"
    changed = (await cluster.client.patch(path, {"spec": {"a": "c"}, "status": {"replicas": 1}})).json()
    assert changed["spec"] == {"a": "b"}
    owned = {each["manager"]: each["fieldsV1"] for each in changed["metadata"]["managedFields"]}
    assert owned["two"] == {"f:status": {".": {}, "f:replicas": {}}}


async def test_a_status_that_is_thrown_away_has_its_default(cluster: Cluster) -> None:
    status = {**schema(a=NUMBER), "default": {"a": 1}}
    await cluster.define(definition(version("v1", schema(status=status), subresources={"status": {}})))
    made = (await cluster.create({"metadata": {"name": "x"}, "status": {"a": 5}})).json()
    assert made["status"] == {"a": 1}
    assert (await cluster.client.get(f"{cluster.path()}/x")).json()["status"] == {"a": 1}


SCALE = {"specReplicasPath": ".spec.wanted.count", "statusReplicasPath": ".status.replicas"}
SCALED = spec(wanted=schema(count=NUMBER, pace={**NUMBER, "default": 2}))


async def test_who_scales_owns_the_number_where_the_definition_has_it(cluster: Cluster) -> None:
    scaled = version("v1", SCALED, subresources={"scale": SCALE})
    await cluster.define(definition(scaled, version("v2", SCALED, storage=False)))
    await apply(cluster, {"spec": {"wanted": {"count": 3, "pace": 1}}})
    await apply(cluster, {"metadata": {"name": "x", "labels": {"a": "b"}}}, "v2", "two")
    path = f"{cluster.path()}/x/scale?fieldManager=three"
    assert (await cluster.client.patch(path, {"spec": {"replicas": 5}})).status == 200
    body = (await cluster.client.get(f"{cluster.path()}/x")).json()
    assert body["spec"] == {"wanted": {"count": 5, "pace": 1}}
    owned = {each["manager"]: each["fieldsV1"] for each in body["metadata"]["managedFields"]}
    assert owned == {
        "one": {"f:spec": {"f:wanted": {"f:pace": {}}}},
        "two": {"f:metadata": {"f:labels": {"f:a": {}}}},
        "three": {"f:spec": {"f:wanted": {"f:count": {}}}},
    }


async def test_what_a_scale_makes_is_defaulted(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", SCALED, subresources={"scale": SCALE})))
    await cluster.create({"metadata": {"name": "x"}})
    assert (await cluster.client.patch(f"{cluster.path()}/x/scale", {"spec": {"replicas": 5}})).status == 200
    body = (await cluster.client.get(f"{cluster.path()}/x")).json()
    assert body["spec"] == {"wanted": {"count": 5, "pace": 2}}


async def test_a_scale_in_another_version_that_changes_nothing_is_no_new_generation(cluster: Cluster) -> None:
    stored = version("v1", spec(wanted=schema(count=NUMBER), a=TEXT))
    await cluster.define(definition(stored, version("v2", SCALED, storage=False, subresources={"scale": SCALE})))
    await cluster.create({"metadata": {"name": "x"}, "spec": {"a": "b", "wanted": {"count": 3}}})
    await cluster.client.patch(f"{cluster.path('v2')}/x/scale", {"spec": {"replicas": 3}})
    body = (await cluster.client.get(f"{cluster.path()}/x")).json()
    # what that version does not know is gone, as with any write
    assert (body["metadata"]["generation"], body["spec"]) == (1, {"wanted": {"count": 3}})


async def test_a_scale_as_table_and_as_metadata(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", SCALED, subresources={"scale": SCALE})))
    await cluster.create({"metadata": {"name": "x"}, "spec": {"wanted": {"count": 0}}})
    accept = "application/json;as={};g=meta.k8s.io;v=v1"
    table = (await cluster.client.get(f"{cluster.path()}/x/scale", accept=accept.format("Table"))).json()
    assert [each["description"] for each in table["columnDefinitions"][1:3]] == [
        "Number of desired replicas",
        "Number of actual replicas",
    ]
    assert table["rows"][0]["cells"][1:3] == [None, 0]
    partial = await cluster.client.get(f"{cluster.path()}/x/scale", accept=accept.format("PartialObjectMetadata"))
    assert sorted(partial.json()) == ["apiVersion", "kind", "metadata"]


async def test_a_scale_that_cannot_be_read_is_refused_in_upstreams_words(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", SCALED, subresources={"scale": SCALE})))
    await cluster.create({"metadata": {"name": "x"}, "spec": {"wanted": {"count": 0}}})
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}, "spec": {"replicas": "a"}}
    refused = await cluster.client.put(f"{cluster.path()}/x/scale", body)
    assert refused.status == 400
    assert (
        refused.json()["message"] == 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
    )


@pytest.mark.parametrize(
    ("body", "query", "message"),
    [
        (
            {},
            "?fieldValidation=Ignore",
            "Foo in version \"v1\" cannot be handled as a Foo: Object 'Kind' is missing in '{}'",
        ),
        ({}, "", "the object provided is unrecognized (must be of type Foo): Object 'Kind' is missing in '{}' ({})"),
        (
            {"apiVersion": None, "kind": "Foo"},
            "",
            'Foo in version "" cannot be handled as a Foo: .apiVersion accessor error: <nil> is of the type <nil>, '
            "expected string",
        ),
    ],
)
async def test_a_body_that_does_not_say_what_it_is(
    cluster: Cluster, body: dict[str, Any], query: str, message: str
) -> None:
    await cluster.define(definition())
    refused = await cluster.client.post(f"{cluster.path()}{query}", body)
    assert (refused.status, refused.json()["message"]) == (400, message)


async def test_the_kind_in_a_status_does_not_matter(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", spec(), subresources={"status": {}})))
    made = (await cluster.create({"metadata": {"name": "x"}})).json()
    changed = {**made, "kind": "Other", "status": {"replicas": 1}}
    answer = await cluster.client.put(f"{cluster.path()}/x/status", changed)
    assert (answer.status, answer.json()["kind"]) == (200, "Foo")


async def test_no_rule_is_evaluated_without_a_name(cluster: Cluster) -> None:
    rules = [{"rule": "self.metadata.name == 'y'"}]
    await cluster.define(definition(version("v1", {**spec(), "x-kubernetes-validations": rules})))
    refused = await cluster.create({"metadata": {}})
    causes = {(each["reason"], each["field"]) for each in refused.json()["details"]["causes"]}
    assert causes == {("FieldValueRequired", "metadata.name"), ("FieldValueInvalid", "<nil>")}


async def test_an_unchanged_object_is_written_anew_where_it_is_stored_in_another_version(cluster: Cluster) -> None:
    first = version("v1", spec(a=TEXT))
    await cluster.define(definition(first, version("v2", spec(a=TEXT), storage=False)))
    made = (await cluster.create({"metadata": {"name": "x"}, "spec": {"a": "b"}})).json()
    again = await cluster.client.put(f"{cluster.path()}/x", made)
    assert again.json()["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    versions = [{**first, "storage": False}, version("v2", spec(a=TEXT))]
    await cluster.change(f"foos.{GROUP}", {"spec": {"versions": versions}})
    moved = (await cluster.client.put(f"{cluster.path()}/x", made)).json()
    assert int(moved["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    last = (await cluster.client.put(f"{cluster.path()}/x", moved)).json()
    assert last["metadata"]["resourceVersion"] == moved["metadata"]["resourceVersion"]


async def test_a_dry_run_answers_with_the_defaults_of_the_stored_version(cluster: Cluster) -> None:
    stored = version("v1", spec(a={**TEXT, "default": "b"}))
    await cluster.define(definition(stored, version("v2", spec(a=TEXT), storage=False)))
    whole = {"apiVersion": f"{GROUP}/v2", "kind": "Foo", "metadata": {"name": "x"}, "spec": {}}
    made = await cluster.client.post(f"{cluster.path('v2')}?dryRun=All", whole)
    assert made.json()["spec"] == {"a": "b"}


async def test_fields_that_only_another_version_selects_by(cluster: Cluster) -> None:
    second = version("v2", spec(a=TEXT, b=TEXT), storage=False, selectableFields=[{"jsonPath": ".spec.a"}])
    await cluster.define(definition(version("v1", spec(a=TEXT)), second))
    for name in ("x", "y"):
        await cluster.create({"metadata": {"name": name}, "spec": {"a": name}})
    body = (await cluster.client.get(f"{cluster.path('v2')}?fieldSelector=spec.a=y")).json()
    assert [each["metadata"]["name"] for each in body["items"]] == ["y"]
    for field in ("spec.a", "v2/spec.a"):
        assert (await cluster.client.get(f"{cluster.path()}?fieldSelector={field}=y")).status == 400
    document = await cluster.answers(f"/openapi/v3/apis/{GROUP}/v1", 200)
    assert "x-kubernetes-selectable-fields" not in document["components"]["schemas"]["com.example.v1.Foo"]


async def test_an_apply_in_another_version_drops_what_that_does_not_know(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", spec(a=TEXT, b=TEXT)), version("v2", spec(a=TEXT), storage=False)))
    await cluster.create({"metadata": {"name": "x"}, "spec": {"a": "b", "b": "c"}}, manager="one")
    answer = await apply(cluster, {"spec": {}}, "v2")
    assert (answer.status, answer.json()["metadata"]["generation"]) == (200, 1)


async def test_a_definition_may_not_call_itself_by_a_name_it_has(cluster: Cluster) -> None:
    await cluster.define(definition())
    await cluster.change(f"foos.{GROUP}", {"spec": {"names": {"shortNames": ["foos"]}}})
    found = await cluster.until(
        f"foos.{GROUP}", lambda found: condition(found, "NamesAccepted").get("status") == "False"
    )
    accepted = condition(found, "NamesAccepted")
    assert (accepted["reason"], accepted["message"]) == ("ShortNamesConflict", '"foos" is already in use')
    assert condition(found, "Established")["status"] == "True"


async def test_there_is_no_hash_of_a_stored_version_that_is_not_served(cluster: Cluster) -> None:
    await cluster.define(definition(version("v1", served=False), version("v2", storage=False)))
    found = await cluster.answers(f"/apis/{GROUP}/v2", 200)
    assert "storageVersionHash" not in found["resources"][0]
    await cluster.client.delete(f"{DEFINITIONS}/foos.{GROUP}")


async def test_operations_across_namespaces_have_the_kind_with_a_capital(cluster: Cluster) -> None:
    await cluster.define(definition(kind="foo"))
    paths = (await cluster.answers(f"/openapi/v3/apis/{GROUP}/v1", 200))["paths"]
    assert paths[f"/apis/{GROUP}/v1/foos"]["get"]["operationId"] == "listExampleComV1FooForAllNamespaces"
    own = paths[f"/apis/{GROUP}/v1/namespaces/{{namespace}}/foos"]["get"]
    assert own["operationId"] == "listExampleComV1Namespacedfoo"


async def test_a_patch_of_a_status_may_say_another_kind(cluster: Cluster) -> None:
    """Only the status of the sent object counts; the stored object keeps its kind."""
    await cluster.define(definition(version("v1", spec(a=TEXT), subresources={"status": {}})))
    await cluster.create({"metadata": {"name": "x"}, "spec": {"a": "b"}})
    path = f"{cluster.path('v1')}/x/status"
    for patch in ({"kind": "Other"}, {"apiVersion": "example.com/v9"}):
        answer = await cluster.client.patch(path, {**patch, "status": {"replicas": 1}})
        assert answer.status == 200, answer.body
        body = answer.json()
        assert (body["kind"], body["apiVersion"]) == ("Foo", "example.com/v1")
        assert body["status"] == {"replicas": 1}


@pytest_asyncio.fixture(loop_scope="session")
async def create_owned_in_removed_version(cluster: Cluster) -> Cluster:
    """Create Foos `x` and `y` with fields owned in v1alpha1, a version that their definition has no longer."""
    versions = [version("v1alpha1", spec(a=TEXT, b=TEXT), storage=True), version("v1", spec(a=TEXT, b=TEXT))]
    await cluster.define(definition(versions[0], {**versions[1], "storage": False}))
    name = f"foos.{GROUP}"
    for each in "xy":
        made = await cluster.create({"metadata": {"name": each}, "spec": {"a": "1"}}, "v1alpha1")
        assert made.status == 201, made.body
    await cluster.change(name, {"spec": {"versions": [{**versions[0], "storage": False}, versions[1]]}})
    for each in "xy":
        await cluster.client.patch(f"{cluster.path()}/{each}?fieldManager=touch", {"metadata": {"labels": {"t": "1"}}})
    await cluster.client.patch(f"{DEFINITIONS}/{name}/status", {"status": {"storedVersions": ["v1"]}})
    await cluster.change(name, {"spec": {"versions": [versions[1]]}})
    await cluster.answers(cluster.path("v1alpha1"), 404)
    return cluster


def owners(found: Any) -> list[tuple[str, str]]:
    return [(each["manager"], each["apiVersion"]) for each in found["metadata"].get("managedFields", ())]


@pytest.mark.parametrize("body", [{"spec": {"b": "2"}}, {}])
async def test_an_apply_fails_where_an_owner_wrote_in_a_version_that_is_gone(
    create_owned_in_removed_version: Cluster, body: dict[str, Any]
) -> None:
    cluster = create_owned_in_removed_version
    answer = await apply(cluster, body)
    text = f"request to convert CR to an invalid group/version: {GROUP}/v1alpha1"
    assert (answer.status, answer.json()["message"]) == (500, text)
    there = (await cluster.client.get(f"{cluster.path()}/x")).json()
    assert sorted(each for _, each in owners(there)) == [f"{GROUP}/v1", f"{GROUP}/v1alpha1"]
    assert there["spec"] == {"a": "1"}


async def test_any_other_write_forgets_owners_where_one_wrote_in_a_version_that_is_gone(
    create_owned_in_removed_version: Cluster,
) -> None:
    cluster = create_owned_in_removed_version
    written = await cluster.client.patch(f"{cluster.path()}/y?fieldManager=m", {"spec": {"b": "2"}})
    assert (written.status, owners(written.json())) == (200, [])
    path = f"{cluster.path()}/y?fieldManager=one"
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": "y"}, "spec": {"b": "3"}}
    refused = await cluster.client.patch(path, body, APPLY)
    assert 'conflict with "before-first-apply"' in refused.json()["message"]
