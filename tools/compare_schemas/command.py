"""The command: makes definitions and objects on the reference server, and holds the library's answers against its."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final

from steersman.machinery.codec.serializer import decode_as_sent, whole_or_float
from steersman.machinery.errors.field import FieldError, Path
from steersman.schema import CoercionError, SchemaChecks, compile_schema, schema_errors
from steersman.schema.equality import copied
from tools.differential.server import Answer, Client, Server

from .schemas import oddly, schema
from .values import changed, value

GROUP: Final = f"compared-{int(time.time())}.example.com"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CANARY: Final = "canary"
"""A property by which is seen whether the schema is in force."""
_WIDTH: Final = 12
_READY: Final = 30.0
_SHOWN: Final = 1500
"""Characters of what is different that are printed."""
_OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

Causes = set[tuple[str, str, str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if both say the same of everything."""
    parser = argparse.ArgumentParser(prog="python -m tools.compare_schemas", description=__doc__)
    parser.add_argument("--reference", required=True, help="a command that starts the reference server")
    parser.add_argument("--schemas", type=int, default=20, help="definitions whose objects are compared")
    parser.add_argument("--values", type=int, default=60, help="objects that are created, of each of these")
    parser.add_argument("--updates", type=int, default=20, help="objects that are updated, of each of these")
    parser.add_argument("--declarations", type=int, default=200, help="definitions that are only judged")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    with Server(options.reference) as client:
        comparison = Comparison(client)
        for number in range(options.declarations):
            comparison.declaration(Random(f"{options.seed}-declaration-{number}"), number)
        for number in range(options.schemas):
            random = Random(f"{options.seed}-schema-{number}")
            comparison.values(random, number, values=options.values, updates=options.updates)
        comparison.report()
        return 1 if comparison.differences else 0


class _Sample:
    """A kind with a schema, in which spec and status are the same, and its objects."""

    def __init__(self, random: Random, number: int, plain: dict[str, Any]) -> None:
        self.random = random
        self.number = number
        self.plain = plain
        self.structural = compile_schema(plain)
        self.path = f"/apis/{GROUP}/v1/foo{number}s"

    def object(self, name: str, spec: Any) -> dict[str, Any]:
        return {"apiVersion": f"{GROUP}/v1", "kind": f"Foo{self.number}", "metadata": {"name": name}, "spec": spec}

    def members(self) -> dict[str, Any]:
        """A few members of a spec, most of them right."""
        properties = self.plain["properties"]["spec"]["properties"]
        names = self.random.sample([name for name in properties if name != _CANARY], self.random.randint(1, 3))
        spec = {name: value(self.random, properties[name]) for name in names}
        if self.random.random() < 0.1:
            spec["unknown"] = {"a": 1}
        return spec

    def cannot_be_handled(self, error: CoercionError) -> str:
        """The message of an answer of 400."""
        kind = f"Foo{self.number}"
        return f'{kind} in version "v1" cannot be handled as a {kind}: {error}'


def _sound(random: Random) -> dict[str, Any]:
    """A schema that is sound in this library's eyes; `declaration` sees to it that they are good."""
    properties: dict[str, Any] = {}
    while len(properties) < _WIDTH:
        each = schema(random)
        plain = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"p": each}}}}
        if not schema_errors(plain, Path("schema"), SchemaChecks(), status_enabled=False):
            properties[f"p{len(properties)}"] = each
    properties[_CANARY] = {"type": "string", "maxLength": 1}
    spec = {"type": "object", "properties": properties}
    return {"type": "object", "properties": {"spec": spec, "status": spec}}


class Comparison:
    """Compares case by case, and tells each difference when it is found."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.cases = 0
        self.refused = 0
        self.differences = 0

    def report(self) -> None:
        print(f"{self.cases} cases, {self.refused} of them refused; {self.differences} differences")

    def _compare(self, title: str, sent: Any, reference: Any, ours: Any) -> None:
        self.cases += 1
        if reference == ours:
            return
        self.differences += 1
        print(f"== {title}\n   sent      {json.dumps(sent)[:_SHOWN]}")
        if isinstance(reference, set) and isinstance(ours, set):
            reference, ours = sorted(reference - ours), sorted(ours - reference)
        print(f"   reference {str(reference)[:_SHOWN]}\n   ours      {str(ours)[:_SHOWN]}", flush=True)

    # Definitions

    def declaration(self, random: Random, number: int) -> None:
        """One definition that is refused, most of the time."""
        plain = {"type": "object", "properties": {"spec": schema(random)}}
        plain = oddly(random, plain) if random.random() < 0.9 else plain
        status = random.random() < 0.3
        answer = self._define(number, plain, status=status, query="?dryRun=All")
        path = Path("spec", "validation", "openAPIV3Schema")
        if answer.code not in (201, 422):
            return  # it cannot be read
        self.refused += answer.code == 422
        errors = schema_errors(plain, path, SchemaChecks(), status_enabled=status)
        self._compare(f"declaration {number}", plain, _causes_of_schema(answer, str(path)), _causes(errors))

    def _define(
        self, number: int, plain: Any, *, status: bool = False, query: str = "", method: str = "POST"
    ) -> Answer:
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": plain}}
        if status:
            version["subresources"] = {"status": {}}
        plural = f"foo{number}s"
        names = {"plural": plural, "singular": f"foo{number}", "kind": f"Foo{number}", "listKind": f"Foo{number}List"}
        definition: dict[str, Any] = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
        }
        if method == "POST":
            return self._client.ask("POST", _DEFINITIONS + query, definition)
        path = f"{_DEFINITIONS}/{plural}.{GROUP}"
        definition["metadata"]["resourceVersion"] = self._client.ask("GET", path).body["metadata"]["resourceVersion"]
        return self._client.ask("PUT", path, definition)

    # Objects

    def values(self, random: Random, number: int, *, values: int, updates: int) -> None:
        """A definition, objects that are created, and objects that became wrong and are updated."""
        sample = _Sample(random, number, _sound(random))
        made = self._define(number, {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}})
        if made.code != 201:
            raise RuntimeError(f"no definition could be made: {made}")
        try:
            self._await(lambda: self._client.ask("GET", sample.path).code == 200)
            stored = [name for name in (f"stored-{each}" for each in range(updates)) if self._store(sample, name)]
            stricter = self._define(number, sample.plain, status=True, method="PUT")
            if stricter.code != 200:
                raise RuntimeError(f"the definition could not be changed: {stricter}")
            self._await_strict(sample)
            for each in range(values):
                self._create(sample, f"created-{each}")
            for name in stored:
                self._update(sample, name)
        finally:
            self._client.ask("DELETE", f"{_DEFINITIONS}/foo{number}s.{GROUP}")

    def _await(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + _READY
        while not is_so():
            if time.monotonic() > end:
                raise RuntimeError("the reference server does not serve the definition")
            time.sleep(0.1)

    def _await_strict(self, sample: _Sample) -> None:
        obj = sample.object("canary", {_CANARY: "too long"})
        for _ in range(3):  # what is in force for one request is for the next
            self._await(lambda: self._client.ask("POST", f"{sample.path}?dryRun=All", obj).code == 422)

    def _store(self, sample: _Sample, name: str) -> bool:
        obj = {**sample.object(name, sample.members()), "status": sample.members()}
        return self._client.ask("POST", sample.path, obj).code == 201

    def _create(self, sample: _Sample, name: str) -> None:
        obj = sample.object(name, sample.members())
        text = json.dumps(obj)
        answer = self._client.ask("POST", f"{sample.path}?dryRun=All", text)
        ours = decode_as_sent(text.encode())
        structural, title = sample.structural, f"object {sample.number}/{name}"
        try:
            unknown = structural.fit(ours, strict=True)
        except CoercionError as error:
            self.refused += 1
            self._compare(title, obj, answer.code, 400)
            self._compare(title, obj, _start(str(answer.body.get("message"))), _start(sample.cannot_be_handled(error)))
            return
        structural.default(ours)
        ours.pop("status", None)
        errors = structural.validate(ours) + structural.validate_embedded(ours) + structural.validate_lists(ours)
        self._hold(title, obj, answer, errors, ours, unknown)

    def _update(self, sample: _Sample, name: str) -> None:
        """A write of an object, or of its status."""
        got = self._client.ask("GET", f"{sample.path}/{name}")
        if got.code != 200:
            return  # metadata of an embedded resource that is no object: it can be stored, but not read
        of_status = sample.random.random() < 0.5
        sent = json.loads(json.dumps(got.body))
        for part in ("spec", "status"):
            sent[part] = changed(sample.random, sent.get(part), sample.plain["properties"][part])
        text = json.dumps(sent)
        path = f"{sample.path}/{name}{'/status' if of_status else ''}"
        answer = self._client.ask("PUT", f"{path}?dryRun=All", text)
        old, new = (decode_as_sent(each.encode()) for each in (json.dumps(got.body), text))
        structural, title = sample.structural, f"update of {path}: {json.dumps(got.body)}"
        try:
            unknown = structural.fit(new, strict=True)
            structural.fit(old, lenient=True)
        except CoercionError:
            self._compare(title, sent, answer.code, 400)
            return
        structural.default(new)
        structural.default(old)
        _replace(new, old, ("spec",) if of_status else ("status",))
        if of_status:
            errors = structural.validate_status(new, old)
        else:
            errors = structural.validate_update(new, old) + structural.validate_embedded(new)
        errors += structural.validate_lists(new, old)
        self._hold(title, sent, answer, errors, new, unknown)

    def _hold(
        self, title: str, sent: Any, answer: Answer, errors: list[FieldError], ours: Any, unknown: list[str]
    ) -> None:
        if answer.code not in (200, 201, 422):
            self._compare(title, sent, (answer.code, answer.body), _causes(errors))
            return
        self.refused += answer.code == 422
        self._compare(title, sent, set(_causes_in(answer)), _causes(errors))
        if answer.code != 422 and not errors:
            for part in ("spec", "status"):
                self._compare(f"{title}: result", sent, answer.body.get(part), _as_in_json(ours.get(part)))
        warned = [text.partition('"')[2][:-1] for text in answer.warnings]
        told = [f'unknown field \\"{path}\\"' for path in unknown]
        self._compare(f"{title}: warnings", sent, sorted(warned), sorted(told))


def _start(text: str) -> str:
    """Return the path of an error; upstream iterates over members in any order, and reports one of several errors."""
    return text.partition(": ")[0]


def _replace(new: dict[str, Any], old: dict[str, Any], parts: tuple[str, ...]) -> None:
    """Takes over parts of the old object that a write of this kind does not change."""
    for part in parts:
        new.pop(part, None)
        if part in old:
            new[part] = copied(old[part])


def _causes(errors: list[FieldError]) -> Causes:
    return {(each.field, each.type, each.body) for each in errors}


def _causes_in(answer: Answer) -> Iterator[tuple[str, str, str]]:
    if answer.code == 422:
        for cause in answer.body["details"].get("causes") or ():
            yield cause["field"], cause["reason"], cause["message"]


def _causes_of_schema(answer: Answer, path: str) -> Causes:
    return {cause for cause in _causes_in(answer) if cause[0].startswith(path)}


def _as_in_json(plain: Any) -> Any:
    """Plain data as it reads after a way through Go's JSON."""
    if isinstance(plain, dict):
        return {name: _as_in_json(member) for name, member in plain.items()}
    if isinstance(plain, list):
        return [_as_in_json(item) for item in plain]
    return whole_or_float(plain) if isinstance(plain, float) else plain
