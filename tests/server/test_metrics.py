"""/metrics, parsed by the rules of Prometheus' text format 0.0.4."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from steersman.machinery.metrics import Counter, Histogram, Registry
from steersman.testing import Client

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(rf'({NAME})="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
ESCAPED = re.compile(r"\\(.)")

Labels = frozenset[tuple[str, str]]


@dataclass
class Family:
    """A metric with its series."""

    kind: str = ""
    help: str = ""
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def value(self, **labels: str) -> float:
        """Return the sum over the series that have these labels."""
        wanted = frozenset(labels.items())
        return sum(value for (_, found), value in self.samples.items() if wanted <= found)


def read_labels(text: str) -> Labels:
    pairs, end = [], 0
    while end < len(text):
        match = LABEL.match(text, end)
        assert match, f"no label at {text[end:]!r}"
        pairs.append((match[1], ESCAPED.sub(lambda found: {"n": "\n"}.get(found[1], found[1]), match[2])))
        end = match.end()
    assert len(dict(pairs)) == len(pairs), f"a label twice in {text!r}"
    return frozenset(pairs)


def parse(text: str) -> dict[str, Family]:
    """Return the families of an exposition. Raises AssertionError for invalid text."""
    assert text.endswith("\n")
    families: dict[str, Family] = {}
    current = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, current, words = line.split(" ", 3)
            assert current not in families, f"{current} comes twice"
            families[current] = Family(help=words)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current
            assert kind in ("counter", "gauge", "histogram", "summary", "untyped")
            families[name].kind = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"no sample: {line!r}"
            family = families[current]
            suffix = match[1].removeprefix(current)
            assert suffix in (("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",)), line
            key = (suffix, read_labels(match[2] or ""))
            assert key not in family.samples, f"a series twice: {line!r}"
            family.samples[key] = float(match[3])
    for name, family in families.items():
        if family.kind == "histogram":
            check_histogram(name, family)
    return families


def check_histogram(name: str, family: Family) -> None:
    """Check that buckets are cumulative and end with +Inf, which equals the count."""
    buckets: dict[Labels, dict[float, float]] = {}
    for (suffix, labels), value in family.samples.items():
        if suffix == "_bucket":
            edge = dict(labels)["le"]
            buckets.setdefault(labels - {("le", edge)}, {})[float(edge)] = value
    for labels, found in buckets.items():
        counts = [found[edge] for edge in sorted(found)]
        assert counts == sorted(counts), f"{name}{set(labels)} is not cumulative"
        assert found[float("inf")] == family.samples["_count", labels]
        assert ("_sum", labels) in family.samples


@pytest.fixture
def scrape(api: Client) -> Any:
    async def read() -> dict[str, Family]:
        answer = await api.get("/metrics")
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4; charset=utf-8")
        return parse(answer.body.decode())

    return read


async def test_every_family_has_help_and_a_type(scrape: Any) -> None:
    families = await scrape()
    assert len(families) > 10
    for name, family in families.items():
        assert family.help, name
        assert family.kind, name


async def test_a_request_is_counted_once_with_its_verb_resource_and_code(
    api: Client, namespace: str, scrape: Any
) -> None:
    labels = {"verb": "POST", "resource": "configmaps", "code": "201"}
    before = (await scrape())["apiserver_request_total"].value(**labels)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert (await api.post(path, {"metadata": {"name": "a"}})).status == 201
    after = await scrape()
    assert after["apiserver_request_total"].value(**labels) == before + 1
    durations = after["apiserver_request_duration_seconds"]
    assert durations.samples["_count", _series(durations, verb="POST", resource="configmaps")] >= 1


async def test_sizes_of_bodies_are_told_by_group(api: Client, namespace: str, scrape: Any) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    assert (await api.post(path, {"metadata": {"name": "a"}, "data": {}, "revision": 1})).status == 201
    sizes = (await scrape())["apiserver_request_body_size_bytes"]
    labels = _series(sizes, group="apps", resource="controllerrevisions", verb="create")
    assert sizes.samples["_count", labels] >= 1
    assert sizes.samples["_bucket", labels | {("le", "1.05e+06")}] >= 1


async def test_applies_are_counted_apart_from_other_patches(api: Client, namespace: str, scrape: Any) -> None:
    def applies(families: Any) -> float:
        return float(families["apiserver_request_total"].value(verb="APPLY", resource="configmaps", code="201"))

    before = applies(await scrape())
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    path = f"/api/v1/namespaces/{namespace}/configmaps/a?fieldManager=m"
    answer = await api.request("PATCH", path, body, content_type="application/apply-patch+yaml")
    assert answer.status == 201
    assert applies(await scrape()) == before + 1


def _series(family: Family, **labels: str) -> Labels:
    wanted = frozenset(labels.items())
    return next(found for suffix, found in family.samples if suffix == "_count" and wanted <= found)


async def test_stored_objects_are_counted(api: Client, namespace: str, scrape: Any) -> None:
    before = (await scrape())["apiserver_storage_objects"].value(resource="secrets")
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for name in ("a", "b"):
        assert (await api.post(path, {"metadata": {"name": name}})).status == 201
    assert (await scrape())["apiserver_storage_objects"].value(resource="secrets") == before + 2


async def test_an_open_watch_is_counted_while_it_is_open(api: Client, namespace: str, scrape: Any) -> None:
    async def watchers() -> float:
        return float((await scrape())["apiserver_registered_watchers"].value(kind="Lease"))

    before = await watchers()
    watch = await api.open("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases?watch=1")
    assert await watchers() == before + 1
    await watch.aclose()
    assert await watchers() == before


async def test_the_process_is_described(scrape: Any) -> None:
    families = await scrape()
    assert families["process_resident_memory_bytes"].value() > 10 << 20
    assert families["process_cpu_seconds_total"].value() > 0
    assert families["kubernetes_build_info"].value(major="1", go_version="", git_commit="") == 1
    assert 3 < families["process_open_fds"].value() < families["process_max_fds"].value()
    resident = families["process_resident_memory_bytes"].value()
    assert resident < families["process_virtual_memory_bytes"].value()
    assert families["process_virtual_memory_bytes"].value() <= families["process_virtual_memory_max_bytes"].value()


@pytest.mark.parametrize("path", ["/metrics", "/metrics/slis"])
async def test_scrapes_tell_when_the_process_began(api: Client, path: str) -> None:
    told = (await api.get(path)).headers["process-start-time-unix"]
    assert 0 <= time.time() - int(told) < 3600


async def test_feature_gates_are_told_with_their_stage(scrape: Any) -> None:
    gates = (await scrape())["kubernetes_feature_enabled"]
    assert gates.samples["", frozenset({("name", "SidecarContainers"), ("stage", "")})] == 1
    assert gates.samples["", frozenset({("name", "CBORServingAndStorage"), ("stage", "ALPHA")})] == 0


async def test_requests_in_deprecated_versions_are_told(api: Client, scrape: Any) -> None:
    assert (await api.get("/api/v1/endpoints")).status == 200
    told = (await scrape())["apiserver_requested_deprecated_apis"]
    assert told.kind == "gauge"
    assert (
        told.samples[
            "",
            frozenset(
                {
                    ("group", ""),
                    ("version", "v1"),
                    ("resource", "endpoints"),
                    ("subresource", ""),
                    ("removed_release", ""),
                }
            ),
        ]
        == 1
    )
    assert told.value(resource="configmaps") == 0


async def test_health_checks_are_series_of_their_own(api: Client) -> None:
    answer = await api.get("/metrics/slis")
    checks = parse(answer.body.decode())["kubernetes_healthcheck"]
    assert checks.value(name="ping", type="livez") == 1
    assert checks.value(name="shutdown", type="readyz") == 1
    assert checks.value(name="shutdown", type="livez") == 0


def test_label_values_are_escaped() -> None:
    registry = Registry()
    counter = Counter("odd_total", "Odd values.", ("value",))
    registry.add(counter)
    odd = 'quote " backslash \\ newline \n comma , brace }'
    counter.inc((odd,))
    assert parse("".join(registry.expose()))["odd_total"].value(value=odd) == 1


def test_values_on_and_beyond_the_edges_of_a_histogram_fall_into_the_right_buckets() -> None:
    registry = Registry()
    histogram = Histogram("took_seconds", "Times.", (0.1, 1.0))
    registry.add(histogram)
    for value in (0.1, 0.5, 1.0, 7.0):
        histogram.observe(value)
    family = parse("".join(registry.expose()))["took_seconds"]
    found = {dict(labels)["le"]: value for (suffix, labels), value in family.samples.items() if suffix == "_bucket"}
    assert found == {"0.1": 1, "1": 3, "+Inf": 4}
    assert family.samples["_sum", frozenset()] == pytest.approx(8.6)
