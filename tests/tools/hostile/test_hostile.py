"""Tests of the tool that measures the cost of hostile requests: its cases can be sent, and measurements are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hpack
import pytest

from steersman.machinery.codec.yaml import load
from tools.hostile import custom, definitions, documents, fillers, floods, heads, objects, selectors, sending
from tools.hostile.case import NAMESPACE, Bytes, Case, Message, Request, Unread
from tools.hostile.command import KINDS, main
from tools.hostile.fields import ITEM, Field, Subject, fields_of, filled, fragment, placed, pointer, subjects
from tools.hostile.measuring import Bounds, Measurer, Result
from tools.hostile.report import as_json, causes, table
from tools.hostile.sending import CONTINUATION, HEADERS, Endpoint, header_frames
from tools.hostile.series import strange
from tools.hostile.server import Hold, Measured

SIZE = 3000


class FakeTarget:
    """Server that has every object as it was first sent."""

    def existing(self, path: str, collection: str, body: dict[str, Any]) -> dict[str, Any]:
        return body

    def ask(self, request: Request) -> tuple[int, bytes]:
        raise AssertionError("not asked")


def subject(kind: str) -> Subject:
    return next(each for each in subjects() if each.kind == kind)


def field(of: Subject, path: str) -> Field:
    return next(each for each in fields_of(of) if str(each) == path)


def made(case: Case, size: int = SIZE) -> Message | None:
    return case.make(size, FakeTarget())


@pytest.mark.parametrize(
    "cases", [documents.cases, selectors.cases, floods.cases, heads.query, heads.paths, heads.tokens]
)
def test_every_case_makes_a_message_of_about_the_size_asked_for(cases: Any) -> None:
    for case in cases():
        message = made(case)
        assert message is not None
        allowed = SIZE if not isinstance(message, Unread) else 5 * SIZE  # a hundred heads
        assert message.size < 2 * SIZE + allowed + 2500, case.name


class WillingTarget(FakeTarget):
    """Server that accepts every request."""

    def ask(self, request: Request) -> tuple[int, bytes]:
        return (201 if request.method == "POST" else 200), b'{"apiVersion":"a/v1","kind":"A","metadata":{}}'


def test_every_shape_of_a_definition_is_sent_in_every_way() -> None:
    for case in definitions.cases():
        message = case.make(SIZE, WillingTarget())
        assert isinstance(message, Request), case.name
        assert message.size < 4 * SIZE + 3000, case.name
        if message.method == "POST" and "customresourcedefinitions" in message.target:
            assert json.loads(message.body)["kind"] == "CustomResourceDefinition"


def test_every_shape_of_an_object_is_sent_in_every_way() -> None:
    for case in custom.cases():
        if case.group == "many":
            continue
        message = case.make(SIZE, WillingTarget())
        assert isinstance(message, Request), case.name
        assert message.size < 4 * SIZE + 3000, case.name


def test_each_place_of_a_head_is_filled_with_each_dear_character() -> None:
    for case in list(fillers.cases())[::97]:
        message = made(case)
        assert isinstance(message, Request)
        assert SIZE * 0.2 < message.size < 3 * SIZE + 1000, case.name  # in characters
    names = {case.name for case in fillers.cases()}
    assert {
        "fillers/http/1.1/headers/Accept/quotes/narrow",
        "fillers/h2/paths/api/v1/{}/invalid-escaped/anonymous",
        f"fillers/http/1.1/queries/GET /api/v1/namespaces/{NAMESPACE}/pods/none/portforward/ports/astral-raw",
    } <= names


def test_bytes_that_are_no_text_are_sent_as_they_are() -> None:
    case = next(each for each in fillers.cases() if each.name == "fillers/http/1.1/paths/{}/invalid-raw/narrow")
    message = made(case, 10)
    assert isinstance(message, Request)
    assert sending.http1_request(Endpoint("a", 1, ""), message).startswith(b"GET /" + b"\xff" * 10 + b" HTTP/1.1\r\n")


def test_headers_are_made_long_one_by_one_and_all_together() -> None:
    for case in list(heads.headers())[::17]:
        message = made(case)
        assert isinstance(message, Request)
        assert SIZE * 0.3 < sum(len(name) + len(value) for name, value in message.headers) < 3 * SIZE, case.name


@pytest.mark.parametrize(
    "kind", ["v1.Pod", "networking.k8s.io/v1.NetworkPolicy", "authorization.k8s.io/v1.SubjectAccessReview"]
)
def test_every_list_of_a_kind_can_be_filled_and_sent_in_every_way(kind: str) -> None:
    for case in list(objects.lists(kind))[::23]:
        message = made(case, 500)
        if isinstance(message, Request) and message.headers[0] == ("Content-Type", "application/json"):
            json.loads(message.body)


def test_block_style_says_the_same() -> None:
    case = next(
        each for each in objects.lists("Pod") if each.name.endswith("spec.hostAliases/distinct/create-yaml-block")
    )
    as_json = next(each for each in objects.lists("Pod") if each.name.endswith("spec.hostAliases/distinct/create-json"))
    message, same = made(case), made(as_json)
    assert isinstance(message, Request)
    assert isinstance(same, Request)
    assert load(message.body)[0] == json.loads(same.body)


def test_numbers_of_any_length_can_be_written() -> None:
    for case in objects.texts("ConfigMap,PriorityClass"):
        if case.name.endswith("digits/create-yaml-flow") or case.name.endswith("digits/apply-yaml"):
            message = made(case, 300_000)
            assert message is not None
            assert message.size > 290_000


def test_names_of_cases_are_their_own() -> None:
    for kind in KINDS:
        names = [case.name for case in KINDS[kind]("Pod,Job")]
        assert len(set(names)) == len(names), kind
        assert all(name.startswith(f"{kind}/") for name in names)


def test_nested_lists_are_found() -> None:
    assert field(subject("apps/v1.Deployment"), "spec.template.spec.containers[].env").type.kind == "list"


@pytest.mark.parametrize(("fill", "count"), [("equal", 1), ("distinct", None), ("empty", 1), ("null", 1)])
def test_a_list_is_full_of_what_was_asked_for(fill: str, count: int | None) -> None:
    text = filled(field(subject("v1.Pod"), "spec.containers[].ports"), fill, SIZE)
    assert text is not None
    items = [json.dumps(each) for each in json.loads(text)]
    assert len(items) > 20
    assert len(set(items)) == (count or len(items))


def test_a_map_of_equal_items_gives_one_key_again_and_again() -> None:
    text = filled(field(subject("v1.ConfigMap"), "data"), "equal", SIZE)
    assert text is not None
    assert text.count('"a":') > 100
    assert len(json.loads(text)) == 1


def test_what_leads_to_a_list_is_made_and_a_patch_has_nothing_else() -> None:
    pod = subject("v1.Pod")
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}}
    path = ("spec", "containers", ITEM, "env", ITEM, "valueFrom")
    whole = json.loads(placed(body, pod.sample.type, path, "[1]"))
    assert whole["spec"]["containers"][0]["env"][0]["valueFrom"] == [1]
    assert whole["spec"]["nodeName"] == "n"
    patch = json.loads(fragment(pod.sample.type, path, body, "[1]"))
    env = [{"name": "extra", "valueFrom": [1]}]
    assert patch == {"spec": {"containers": [{"name": "c", "env": env}]}}
    assert pointer(body, pod.sample.type, path) == "/spec/containers/0/env/0/valueFrom"


def test_another_source_of_a_volume_is_another_volume() -> None:
    pod = subject("v1.Pod")
    body = {"metadata": {"name": "a"}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    path = ("spec", "volumes", ITEM, "configMap", "items")
    volumes = json.loads(placed(body, pod.sample.type, path, "[]"))["spec"]["volumes"]
    assert volumes == [{"name": "v", "emptyDir": {}}, {"name": "extra", "configMap": {"items": []}}]


def test_a_block_of_headers_goes_on_in_further_frames() -> None:
    block = hpack.Encoder().encode([("a", "b" * 40_000)], huffman=False)
    data, kinds, found = header_frames(1, block), [], b""
    while data:
        length = int.from_bytes(data[:3], "big")
        kinds.append((data[3], data[4]))
        found += data[9 : 9 + length]
        data = data[9 + length :]
    assert kinds == [(HEADERS, 1), (CONTINUATION, 0), (CONTINUATION, 4)]
    assert found == block


# Judging


class FakeServer(FakeTarget):
    """Server that takes `cpu(size)` seconds for a message, without yielding."""

    def __init__(self, cpu: Any, *, late_over: int = 1 << 40) -> None:
        self._cpu, self._late_over = cpu, late_over
        self.asked: list[int] = []
        self.restarts = 0

    def measure(self, message: Message, lasting: float = 0.0) -> Measured:
        self.asked.append(message.size)
        cpu = self._cpu(message.size)
        late = message.size > self._late_over
        return Measured((200,), cpu, cpu, cpu, (Hold(cpu, cpu, "a.b", "a.b:1 < c.d:2"),), late)

    def restart(self) -> None:
        self.restarts += 1


CASE = Case("fake/case", lambda size, target: Bytes(b"x" * size))
SIZES = (30, 300, 3000)


def played(ours: Any, reference: Any = None) -> list[Result]:
    return list(Measurer(ours, reference, Bounds()).play(CASE, SIZES))


def test_a_case_within_its_bounds_is_played_in_all_sizes_and_never_sent_to_the_reference() -> None:
    reference = FakeServer(lambda size: 0.0)
    results = played(FakeServer(lambda size: size / 1e6), reference)
    assert [each.size for each in results] == [30, 300, 3000]
    assert not any(each.offends for each in results)
    assert reference.asked == []


def test_growth_ends_where_a_bound_is_passed_by_far() -> None:
    ours = FakeServer(lambda size: size * size / 1e5)
    results = played(ours)
    assert [each.offends for each in results] == [False, True]
    assert ours.asked == [30, 300]


def test_what_offends_a_little_is_measured_again_and_the_best_counts() -> None:
    times = iter([0.07, 0.02, 0.03])
    [result, *_] = played(FakeServer(lambda size: next(times, 0.01)))
    assert not result.offends
    assert result.held == 0.02


def test_the_references_time_is_the_measure_where_ours_is_above_the_floor() -> None:
    quick, slow = FakeServer(lambda size: 0.006), FakeServer(lambda size: 0.1)
    ours = FakeServer(lambda size: 0.4 if size > 1000 else 0.0)
    bounds = Bounds(held=10)
    assert list(Measurer(ours, quick, bounds).play(CASE, SIZES))[-1].offends  # type: ignore[arg-type]
    assert not list(Measurer(ours, slow, bounds).play(CASE, SIZES))[-1].offends  # type: ignore[arg-type]


def test_a_server_that_does_not_answer_is_started_again_and_ends_the_case() -> None:
    ours = FakeServer(lambda size: 0.001, late_over=100)
    results = played(ours)
    assert [each.offends for each in results] == [False, True]
    assert ours.restarts == 1


def test_the_report_names_the_worst_first_and_its_cause() -> None:
    results = played(FakeServer(lambda size: size * size / 1e5))
    lines = list(table(results, 10))
    assert "fake/case (a.b)" in lines[1]
    assert any("a.b" in line and "fake/case" in line for line in causes(results))
    assert [as_json(each)["offends"] for each in results] == [False, True]


@pytest.mark.slow
def test_a_real_server_is_measured_and_what_holds_its_loop_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "result.json"
    only = ["--only=floods/http1/pipelined-livez", "--only=lists/v1.ConfigMap/data/distinct/*"]
    # No measurement keeps this bound, so that the report has measurements.
    code = main([*only, "--sizes=30KB", "--held=0.0001", "--floor=0", f"--json={out}"])
    results = {each["case"]: each for each in json.loads(out.read_text())}
    assert results["floods/http1/pipelined-livez"]["codes"]["200"] > 500
    created = results["lists/v1.ConfigMap/data/distinct/create-json"]
    assert created["codes"] == {"201": 1}
    assert created["wait"] > 0
    shown = capsys.readouterr().out
    assert f"{len(results)} of {len(results)} cases" in shown
    assert code == int(any(each["offends"] for each in results.values()))


def test_a_case_is_over_its_bounds_when_another_user_waits_or_is_turned_away() -> None:
    def result(other: float, turned_away: int = 0, *, takes_seats: bool = False) -> Result:
        ours = Measured((), 1.0, 0.01, 0.01, other=other, turned_away=turned_away)
        return Result("a", 1, ours, None, Bounds(), takes_seats)

    assert not result(0.5).offends
    assert result(1.5).offends
    assert result(0.01, 1).offends
    assert not result(15.0, 3, takes_seats=True).offends
    assert "another user waits" in next(iter(causes([result(1.5)])))
    assert " 2 lost " in list(table([result(0.1, 2)], 1))[1]


def test_labels_that_are_long_and_series_of_what_is_not_served_are_found() -> None:
    served = {("", "", "", ""), ("", "v1", "pods", ""), ("", "v1", "pods", "log"), ("a.b", "v1", "", "")}

    def series(group: str, version: str, resource: str, subresource: str, **more: str) -> str:
        labels = {"group": group, "version": version, "resource": resource, "subresource": subresource, **more}
        pairs = [f'{key}="{value}"' for key, value in labels.items()]
        return f"some_total{{{','.join(pairs)}}} 1"

    good = [
        "# HELP a b",
        series("", "v1", "pods", "log"),
        series("a.b", "v1", "", ""),
        series("hostile.example.com", "v1", "things", ""),
        'held{resource="pods"} 1',
    ]
    assert list(strange("\n".join(good), served)) == []
    bad = [series("", "v1", "none", ""), series("a.b", "v1", "pods", ""), series("", "v1", "pods", "", name="n" * 254)]
    assert [each.partition(":")[0] for each in strange("\n".join(bad), served)] == [
        "not served",
        "not served",
        "label name of 254 characters",
    ]


@pytest.mark.slow
def test_answers_that_nobody_reads_cost_others_neither_time_nor_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """A busy machine keeps the bounds. A metric of an unserved resource, or with a long label, exceeds them too."""
    code = main(["--only=floods/unread/*", "--sizes=300KB", "--held=1000", "--other=6000"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "5 of 5 cases" in shown


@pytest.mark.slow
def test_heads_full_of_dear_characters_hold_nobody_up(capsys: pytest.CaptureFixture[str]) -> None:
    """A sample of all places and characters keeps bounds that suit a busy machine."""
    code = main(["--kinds=fillers", "--cases=60", "--sizes=900KB", "--held=250", "--other=6000"])
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "60 of 60 cases" in shown
