"""Compares what kube-controller-manager says of the types of ValidatingAdmissionPolicies with what is said here.

    python -m tools.compare_type_checking --a COMMAND --controller-manager PATH [--b COMMAND] [--random 300] [--record]

Makes the definitions and policies of `tests/controlplane/recorded_type_checking.json` on the server that `--a` starts,
where the real controller works, and on the one that `--b` starts, which checks types by itself, and holds their
statuses against each other; `--random` adds policies of random expressions. `--record` writes into the file what the
first server has.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from .differential.server import Client, Server

RECORDED: Final = Path(__file__).parent.parent / "tests" / "controlplane" / "recorded_type_checking.json"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_PATIENCE: Final = 120.0
"""Seconds until the last policy is checked."""
_VARIABLE: Final = re.compile(r"\b_var[0-9]+\b")
_NUMBERED: Final = re.compile(r"\b([A-Z][A-Za-z]*?)[0-9]+(?=[.,)@']|$)", re.MULTILINE)

_RULES: Final = (
    (("apps",), ("v1",), ("deployments",)),
    (("",), ("v1",), ("pods",)),
    (("",), ("v1",), ("configmaps", "secrets")),
    (("batch",), ("v1",), ("jobs", "cronjobs")),
    (("types.example.com",), ("v1",), ("widgets",)),
    (("types.example.com",), ("v1", "v2"), ("widgets", "blobs")),
    (("apps", ""), ("v1",), ("statefulsets", "services")),
    (("apps",), ("v1",), ("deployment",)),
    (("",), ("v1",), ("events", "podlists", "lists")),
    (("*",), ("v1",), ("pods",)),
)
_PARAMS: Final = (("v1", "ConfigMap"), ("types.example.com/v1", "Widget"), ("v1", "Nothing"), ("apps/v1", "Deployment"))
_PATHS: Final = (
    "",
    ".metadata",
    ".metadata.name",
    ".metadata.labels",
    ".metadata.labels.a",
    ".metadata.creationTimestamp",
    ".metadata.generation",
    ".metadata.finalizers",
    ".metadata.ownerReferences",
    ".metadata.ownerReferences[0]",
    ".spec",
    ".spec.replicas",
    ".spec.template.spec.containers",
    ".spec.containers",
    ".spec.containers[0].ports",
    ".spec.template.metadata",
    ".data",
    ".data.a",
    ".data['a']",
    ".spec.count",
    ".spec.words",
    ".spec.table",
    ".spec.either",
    ".spec.free",
    ".spec.pod.metadata",
    ".spec.when",
    ".spec.deep[0]",
    ".spec.tables.a",
    ".status",
    ".spec.?replicas",
    ".?data.?a",
    ".spec.selector",
    ".items",
    ".items[0].spec",
    ".spec.jobTemplate.spec.parallelism",
    ".kind",
    ".spec.ports[0].targetPort",
    ".spec.containers[0].resources.limits",
    ".metadata.managedFields[0].time",
)
_MEMBERS: Final = (
    "metadata",
    "spec",
    "status",
    "data",
    "name",
    "labels",
    "template",
    "containers",
    "replicas",
    "count",
    "words",
    "nothing",
    "creationTimestamp",
    "ports",
    "image",
    "table",
    "either",
    "kind",
    "free",
    "pod",
    "userInfo",
    "groups",
    "finalizers",
    "ownerReferences",
    "deep",
    "tables",
    "items",
    "namespace",
    "selector",
    "type",
    "resources",
    "when",
)
_LITERALS: Final = (
    "1",
    "'x'",
    "true",
    "null",
    "2.5",
    "1u",
    "b'x'",
    "[1, 2]",
    "['a']",
    "{'a': 'b'}",
    "[]",
    "{}",
    "duration('1s')",
    "timestamp('2020-01-01T00:00:00Z')",
    "quantity('1')",
)
_FORMS: Final = (
    "{0} == {1}",
    "{0} != {1}",
    "{0} > {1}",
    "{0} + {1} == {2}",
    "{0} in {1}",
    "{0} && {1}",
    "{0} || !{1}",
    "!{0}",
    "size({0}) > {1}",
    "{0}.size() == {1}",
    "{0}.startsWith({1})",
    "string({0}) == {1}",
    "int({0}) < {1}",
    "{0}.all(x, x == {1})",
    "{0}.exists(x, x.name == {1})",
    "{0}.map(x, x.name) == {1}",
    "{0}.filter(x, x != {1}) == []",
    "{0} ? {1} == {2} : false",
    "has({0}.name) && {1} == {2}",
    "{0}.?name.orValue({1}) == {2}",
    "{0}[0] == {1}",
    "{0}['a'] == {1}",
    "type({0}) == {1}",
    "[{0}, {1}] == [{2}]",
    "{{'a': {0}}}.a == {1}",
    "cel.bind(y, {0}, y == {1})",
    "{0}.all(i, x, x == {1})",
    "{0}.matches({1})",
    "{0}.transformMap(k, v, v == {1}) == {{}}",
    "dyn({0}) == {1}",
    "{0}.getHours() == {1}",
    "{0}.sum() == {1}",
    "authorizer.path({0}).check({1}).allowed()",
    "{0}\n  == {1} ",
)

Body = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="compare_type_checking", description="Compare the checking of types.")
    parser.add_argument("--a", required=True, metavar="CMD", help="starts kube-apiserver")
    parser.add_argument("--controller-manager", required=True, metavar="PATH", help="kube-controller-manager")
    parser.add_argument("--b", metavar="CMD", help="starts the server to compare with it")
    parser.add_argument("--random", type=int, default=0, help="random policies besides (default: 0)")
    parser.add_argument("--seed", type=int, default=1, help="what these are made from (default: 1)")
    parser.add_argument("--show", type=int, default=10, help="differences to show (default: 10)")
    parser.add_argument("--record", action="store_true", help="write what the first server has into the file")
    options = parser.parse_args(arguments)
    recorded = json.loads(RECORDED.read_text())
    random = Random(options.seed)
    policies = [*recorded["policies"], *(random_policy(random, number) for number in range(options.random))]
    with Server(options.a) as a, controller_manager(options.controller_manager, a):
        right = statuses(a, recorded["definitions"], policies)
    if options.record:
        for each in recorded["policies"]:
            each["status"] = right[each["name"]]
        RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")
    if options.b is None:
        return 0
    with Server(options.b) as b:
        return compare(policies, right, statuses(b, recorded["definitions"], policies), options.show)


def compare(policies: list[Body], right: Body, found: Body, show: int) -> int:
    """Tells of the differences; 1 if there are any."""
    different = [each for each in policies if right[each["name"]] != found[each["name"]]]
    for each in different[:show]:
        print(f"== {each['name']}: {json.dumps(each['spec'], ensure_ascii=False)}")
        for which, status in (("A", right), ("B", found)):
            print(f"{which}: {json.dumps(status[each['name']], indent=1, ensure_ascii=False)}")
    checked = sum("observedGeneration" in each for each in right.values())
    warned = sum(bool(each.get("typeChecking")) for each in right.values())
    print(f"{len(policies)} policies, {checked} checked, {warned} with warnings, {len(different)} differ")
    return 1 if different else 0


@contextmanager
def controller_manager(path: str, server: Client) -> Iterator[None]:
    """Runs the one controller beside a server."""
    found = server.found
    user = {"name": "a", "user": {"token": found["token"]}}
    cluster = {"name": "a", "cluster": {"server": found["url"], "certificate-authority": found["ca"]}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "users": [user],
        "clusters": [cluster],
        "contexts": [context],
        "current-context": "a",
    }
    with TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(
                [
                    path,
                    "--controllers=validatingadmissionpolicy-status-controller",
                    f"--kubeconfig={kubeconfig}",
                    "--leader-elect=false",
                    "--secure-port=0",
                    "--kube-api-qps=500",
                    "--kube-api-burst=1000",
                ],
                stdout=log,
                stderr=log,
            )
            try:
                yield
            finally:
                process.terminate()
                process.wait()


def statuses(server: Client, definitions: list[Body], policies: list[Body]) -> Body:
    """The statuses that policies get by their names; the answer to their creation of those that are refused."""
    for definition in definitions:
        server.ask("POST", _DEFINITIONS, definition)
    for definition in definitions:
        _until(lambda name=definition["metadata"]["name"]: _is_established(server, name))
    found: Body = {}
    for each in policies:
        answer = server.ask("POST", _POLICIES, {"metadata": {"name": each["name"]}, "spec": each["spec"]})
        if answer.code != 201:
            found[each["name"]] = {"refused": _VARIABLE.sub("_var", json.dumps(answer.body))}
    wanted = [each["name"] for each in policies if each["name"] not in found]

    def are_checked() -> bool:
        listed = {each["metadata"]["name"]: each for each in server.ask("GET", _POLICIES).body["items"]}
        found.update((name, comparable(listed[name]["status"])) for name in wanted)
        return all("observedGeneration" in found[name] for name in wanted)

    _until(are_checked)
    return found


def _until(holds: Any) -> None:
    end = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > end:
            print("some policies are not checked in time", file=sys.stderr)
            return
        time.sleep(0.2)


def _is_established(server: Client, name: str) -> bool:
    definition = server.ask("GET", f"{_DEFINITIONS}/{name}").body
    conditions = definition.get("status", {}).get("conditions") or []
    return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)


def comparable(status: Body) -> Body:
    """A status without the numbers that are in the names of types, which are of the clock, and in those of type
    variables, which upstream gives in any order."""
    document: Body = json.loads(json.dumps(status))
    for each in document.get("typeChecking", {}).get("expressionWarnings", ()):
        each["warning"] = "\n".join(map(_without_numbers, each["warning"].split("\n")))
    return document


def _without_numbers(line: str) -> str:
    return line if line.startswith(" | ") else _VARIABLE.sub("_var", _NUMBERED.sub(r"\1", line))


def random_policy(random: Random, number: int) -> Body:
    """A policy of a few random expressions about objects of random kinds."""
    groups, versions, resources = random.choice(_RULES)
    rule = {"apiGroups": groups, "apiVersions": versions, "resources": resources, "operations": ["CREATE"]}
    spec: Body = {"matchConstraints": {"resourceRules": [rule]}, "variables": []}
    roots = ["object", "object", "object", "oldObject"]
    if random.random() < 0.4:
        spec["paramKind"] = dict(zip(("apiVersion", "kind"), random.choice(_PARAMS), strict=True))
        roots += ["params", "params"]
    for name in ("a", "b"):
        if random.random() < 0.5:
            spec["variables"].append({"name": name, "expression": _value(random, roots)})
            roots.append(f"variables.{name}")
    spec["validations"] = [_validation(random, roots) for _ in range(random.choice((1, 1, 2)))]
    return {"name": f"random-{number}", "spec": spec}


def _validation(random: Random, roots: Sequence[str]) -> Body:
    found = {"expression": _boolean(random, roots)}
    if random.random() < 0.2:
        found["messageExpression"] = f"'a' + string({_value(random, roots)})"
    return found


def _boolean(random: Random, roots: Sequence[str]) -> str:
    values = (_value(random, roots), *(_literal_or_value(random, roots) for _ in range(2)))
    return random.choice(_FORMS).format(*values)


def _literal_or_value(random: Random, roots: Sequence[str]) -> str:
    return random.choice(_LITERALS) if random.random() < 0.4 else _value(random, roots)


def _value(random: Random, roots: Sequence[str]) -> str:
    """A path that few expressions are refused for; most are members of many kinds."""
    if random.random() < 0.4:
        return random.choice(roots) + random.choice(_PATHS)
    found = random.choice(roots)
    for _ in range(random.choice((1, 1, 2, 2, 3))):
        found += random.choice((".{0}", ".{0}", ".{0}", ".{0}", ".?{0}", "[0].{0}", "['{0}']")).format(
            random.choice(_MEMBERS)
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
