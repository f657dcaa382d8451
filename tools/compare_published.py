"""Sends what projects publish for admission to two servers, and compares all that comes of it.

    python -m tools.compare_published --a COMMAND --b COMMAND [--objects 12] [--only TEXT] [MODULE@VERSION | FOLDER ...]

Configurations of webhooks are created, given certificates as injectors do it, applied, and deleted. The objects of the
definitions that a project brings are created (dry run). Admission policies are created with their bindings and
parameters, made where they have none, and objects that they are about are created, changed and deleted: those that the
project publishes, and samples of the built-in kinds. Compared are all answers, what is stored, and warnings.
"""

from __future__ import annotations

import argparse
import base64
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from .compare_definitions import definitions_in
from .differential.case import NAME, Case, Step
from .differential.command import Comparer
from .differential.custom_definitions import Defined
from .differential.objects import SAMPLES
from .differential.server import Client, Server
from .differential.serving import serve
from .published import Body, charts_of, documents, files_of, folder_of

SOURCES: Final = (
    "github.com/open-policy-agent/gatekeeper/v3@v3.23.1",
    "github.com/kyverno/kyverno@v1.19.1",
    "github.com/cert-manager/cert-manager@v1.21.2",
    "sigs.k8s.io/gateway-api@v1.5.0",
    "sigs.k8s.io/kueue@v0.14.0",
    "sigs.k8s.io/cluster-api@v1.14.2",
    "k8s.io/kubernetes@v1.36.3",
    "istio.io/istio@v0.0.0-20260827124520-eed52ebb66ad",
    "github.com/external-secrets/external-secrets@v1.3.2",
    "github.com/tektoncd/pipeline@v1.3.0",
    "knative.dev/serving@v0.51.0",
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    str(Path(__file__).with_name("kyverno_webhooks.yaml")),
)
_GROUP: Final = "admissionregistration.k8s.io"
_VERSION: Final = f"{_GROUP}/v1"
_CONFIGURATIONS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_POLICIES: Final = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_CA: Final = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n").decode()
_SEEN: Final = 2.0
"""Seconds in which upstream finds out about a policy."""
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"


class Paths:
    """Paths of objects, by the resources that a server serves."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: dict[str, dict[str, tuple[str, bool]]] = {}

    def collection(self, body: Body) -> tuple[str, bool] | None:
        """The path of an object's collection, with its namespace, and whether it has one; None if it is not served."""
        version = str(body["apiVersion"])
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        kinds = self._found.get(version)
        if kinds is None:
            answer = self._client.ask("GET", root)
            listed = answer.body.get("resources", []) if answer.code == 200 else []
            kinds = {each["kind"]: (each["name"], each["namespaced"]) for each in listed if "/" not in each["name"]}
            if kinds:
                self._found[version] = kinds
        if body["kind"] not in kinds:
            return None
        plural, namespaced = kinds[body["kind"]]
        between = f"/namespaces/{body['metadata'].get('namespace', 'default')}" if namespaced else ""
        return f"{root}{between}/{plural}", namespaced


class Source:
    """All objects of a project, by the file they are in."""

    def __init__(self, name: str) -> None:
        folder = folder_of(name)
        self.files: dict[Path, list[Body]] = {}
        texts = [(folder, folder.read_bytes())] if folder.is_file() else _texts(folder)
        for file, text in texts:
            self.files.setdefault(file.parent, []).extend(documents(text))
        self.definitions = {
            each["metadata"]["name"]: each
            for _, text in texts
            if b"CustomResourceDef" in text
            for each in definitions_in(text)
        }

    def of(self, kinds: Sequence[str], api_version: str = _VERSION) -> Iterator[tuple[Path, Body]]:
        """The objects of some kinds, once each."""
        told: list[Body] = []
        for folder, objects in self.files.items():
            for each in objects:
                if each["kind"] in kinds and each["apiVersion"] == api_version and each not in told:
                    told.append(each)
                    yield folder, each

    def all(self) -> Iterator[Body]:
        for objects in self.files.values():
            yield from objects


def _texts(folder: Path) -> list[tuple[Path, bytes]]:
    return [*files_of(folder, b"kind:"), *charts_of(folder, _GROUP.encode())]


class Comparison:
    """Plays what is made of the objects of projects, and counts what differs."""

    def __init__(self, a: Client, b: Client, options: argparse.Namespace) -> None:
        self._clients = (a, b)
        self._comparer = Comparer(a, b)
        self._comparer.prepare()
        self._paths = Paths(a)
        self._options = options
        self._namespaces: set[str] = set()
        samples = (each for each in yaml.safe_load_all(SAMPLES.read_text()) if each)
        self._samples: list[Body] = [each | {"metadata": each.get("metadata", {})} for each in samples]
        self.different = 0
        self.requests = 0

    def run(self, name: str) -> None:
        """Compares all that a project publishes, and tells what that was."""
        source = Source(name)
        serve(self._clients, [Defined(each) for each in source.definitions.values()])
        wanted = self._options.only
        configurations = [each for _, each in source.of(_CONFIGURATIONS) if wanted in str(each["metadata"].get("name"))]
        for each in configurations:
            self._configuration(each)
        groups = {each["spec"]["group"] for each in source.definitions.values()}
        custom = [each for each in source.all() if each["apiVersion"].partition("/")[0] in groups]
        custom = [each for each in custom if wanted in str(each["metadata"].get("name"))]
        for each in custom:
            self._custom(each)
        policies = [found for found in source.of(_POLICIES) if wanted in str(found[1]["metadata"].get("name"))]
        for folder, each in policies:
            self._policy(source, folder, each)
        counts = f"{len(configurations)} configurations, {len(custom)} custom objects, {len(policies)} policies"
        print(f"{name}: {counts}; {self.requests} requests, {self.different} differ so far", flush=True)

    def _play(self, title: str, steps: list[Step], cleanup: list[Step]) -> None:
        self.requests += len(steps)
        found = self._comparer.play(Case(title, steps, cleanup))
        if found is not None and self._comparer.play(Case(title, steps, cleanup)) is not None:
            self.different += 1
            if self.different <= self._options.show:
                print(found.report(""), flush=True)

    def _configuration(self, body: Body) -> None:
        path, _ = self._paths.collection(body) or ("", False)
        name = body["metadata"].get("name", "")
        own = f"{path}/{name}"
        bundles = [{"name": each.get("name"), "clientConfig": {"caBundle": _CA}} for each in body.get("webhooks") or ()]
        steps = [
            Step("POST", f"{path}?dryRun=All&fieldValidation=Strict", body),
            Step("POST", path, body),
            *([Step("PATCH", own, {"webhooks": bundles}, _STRATEGIC)] if bundles else []),
            Step("PATCH", f"{own}?fieldManager=project&force=true", body, _APPLY),
            Step("PATCH", own, {"metadata": {"labels": {"a": "b"}}}, _MERGE),
            Step("GET", own),
            Step("DELETE", own),
        ]
        self._play(f"{body['kind']} {name}", steps, [Step("DELETE", own)])

    def _custom(self, body: Body) -> None:
        body["metadata"].pop("namespace", None)
        if "generateName" in body["metadata"]:
            body["metadata"]["generateName"] = "some-gen-"  # what comparisons know as such
        found = self._paths.collection(body)
        if found is not None:
            strict = Step("POST", f"{found[0]}?dryRun=All&fieldValidation=Strict", body)
            self._play(
                f"{body['kind']} {body['metadata'].get('name')}",
                [strict, Step("POST", f"{found[0]}?dryRun=All", body)],
                [],
            )

    # Policies

    def _policy(self, source: Source, folder: Path, body: Body) -> None:
        name, spec = body["metadata"].get("name", ""), body.get("spec") or {}
        beside = source.files[folder]
        made: list[Body] = [body]
        param = self._parameter(source, beside, spec.get("paramKind"))
        if param is not None:
            made.insert(0, param)
        bindings = [
            each
            for each in beside
            if each["kind"] == f"{body['kind']}Binding" and (each.get("spec") or {}).get("policyName") == name
        ]
        made += bindings or [self._binding(body, param)]
        steps: list[Step] = []
        cleanup: list[Step] = []
        for each in made:
            self._namespace(each)
            path = (self._paths.collection(each) or ("/nowhere", False))[0]
            is_last = each is made[-1]
            steps.append(Step("POST", path, each, pause=_SEEN if is_last else 0.0))
            cleanup.insert(0, Step("DELETE", f"{path}/{each['metadata'].get('name')}"))
        for each in self._objects(source, beside, spec):
            own_steps, gone = self._life(each)
            steps += own_steps
            cleanup = [*gone, *cleanup]
        self._play(f"{body['kind']} {name}", steps, cleanup)

    def _parameter(self, source: Source, beside: list[Body], kind: Any) -> Body | None:
        if not kind:
            return None
        key = (kind.get("apiVersion"), kind.get("kind"))
        for each in (*beside, *source.all()):
            if (each["apiVersion"], each["kind"]) == key:
                return each
        return None

    def _binding(self, policy: Body, param: Body | None) -> Body:
        spec: Body = {"policyName": policy["metadata"].get("name")}
        if policy["kind"] == "ValidatingAdmissionPolicy":
            spec["validationActions"] = ["Deny"]
        if (policy.get("spec") or {}).get("paramKind"):
            spec["paramRef"] = {"name": "none", "parameterNotFoundAction": "Deny"}
            if param is not None:
                spec["paramRef"]["name"] = param["metadata"].get("name")
                if (self._paths.collection(param) or ("", False))[1]:
                    spec["paramRef"]["namespace"] = param["metadata"].setdefault("namespace", "default")
        return {"apiVersion": _VERSION, "kind": f"{policy['kind']}Binding", "metadata": {"name": "made"}, "spec": spec}

    def _objects(self, source: Source, beside: list[Body], spec: Body) -> list[Body]:
        """Return the objects that the rules of a policy match: the nearest ones first, then samples."""
        rules = (spec.get("matchConstraints") or {}).get("resourceRules") or []
        near = [each for each in beside if self._is_about(rules, each)]
        far = [each for each in source.all() if each not in near and self._is_about(rules, each)]
        samples = [each for each in self._samples if self._is_about(rules, each)]
        half = self._options.objects // 2
        return (near + far)[:half] + samples[:half]

    def _is_about(self, rules: list[Body], body: Body) -> bool:
        if body["apiVersion"] == _VERSION:
            return False
        found = self._paths.collection(body)
        if found is None:
            return False
        group = body["apiVersion"].rpartition("/")[0]
        plural = found[0].rpartition("/")[2]
        return any(
            {group, "*"} & set(rule.get("apiGroups") or ()) and {plural, "*", "*/*"} & set(rule.get("resources") or ())
            for rule in rules
        )

    def _life(self, body: Body) -> tuple[list[Step], list[Step]]:
        """An object's creation, change and end."""
        self._namespace(body)
        path, _ = self._paths.collection(body) or ("", False)
        if "name" not in body["metadata"]:
            return [Step("POST", f"{path}?dryRun=All", body)], []
        own = f"{path}/{body['metadata']['name']}"
        change = {"metadata": {"labels": {"changed": "yes"}, "annotations": {"changed": "yes"}}}
        steps = [
            Step("POST", path, body),
            Step("PATCH", own, change, _MERGE),
            Step("DELETE", f"{own}?gracePeriodSeconds=0", {"propagationPolicy": "Background"}),
        ]
        if body["kind"] == "Namespace":
            steps = [Step("POST", f"{path}?dryRun=All", body)]
        return steps, [Step("DELETE", f"{own}?gracePeriodSeconds=0")]

    def _namespace(self, body: Body) -> None:
        """Makes the namespace of an object, with an account for pods."""
        name = body["metadata"].get("namespace", "default")
        if name in self._namespaces or NAME in name:
            return
        self._namespaces.add(name)
        for client in self._clients:
            client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            client.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(
        prog="compare_published", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--a", required=True, metavar="CMD", help="starts the server that is right")
    parser.add_argument("--b", required=True, metavar="CMD", help="starts the server to compare with it")
    parser.add_argument("--objects", type=int, default=12, help="objects that a policy is tried on (default: 12)")
    parser.add_argument("--only", default="", help="objects and policies whose name has this in it")
    parser.add_argument("--show", type=int, default=40, help="differences to show (default: 40)")
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="Go modules, or folders (default: a list of its own)"
    )
    options = parser.parse_args(arguments)
    with Server(options.a) as a, Server(options.b) as b:
        comparison = Comparison(a, b, options)
        began = time.monotonic()
        for source in options.sources or SOURCES:
            comparison.run(source)
        print(f"{comparison.requests} requests, {comparison.different} differ, {time.monotonic() - began:.0f} s")
        return 1 if comparison.different else 0


if __name__ == "__main__":
    sys.exit(main())
