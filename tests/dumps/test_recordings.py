"""Files of recordings: they go on after a kill, and others are refused."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import msgspec
import pytest

from steersman.dumps.errors import DumpError
from steersman.dumps.recordings import change_line, header_line, open_to_append, read_changes

OBJECT = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "team"}}


def trace_of(obj: object) -> bytes:
    return msgspec.msgpack.encode({"version": 2, "events": [{"ts": 1, "applied_objs": [obj]}]})


def nested(levels: int) -> object:
    found: object = "end"
    for _ in range(levels):
        found = {"a": found}
    return found


def append(path: Path, *lines: bytes) -> None:
    descriptor = open_to_append(path)
    for each in lines:
        os.write(descriptor, each)
    os.close(descriptor)


def test_a_recording_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "day.rec"
    first, second = change_line(1.5, "PRESENT", OBJECT), change_line(2, "DELETED", OBJECT)
    append(file, first, second[:40])
    assert [each.type for each in read_changes(file)] == ["PRESENT"]
    append(file, second)
    assert [(each.time, each.type, each.object) for each in read_changes(file)] == [
        (1.5, "PRESENT", OBJECT),
        (2, "DELETED", OBJECT),
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    packed = tmp_path / "day.rec.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert len(list(read_changes(packed))) == 2


def test_other_files_are_not_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine\n")
    with pytest.raises(DumpError, match="not a recording"):
        open_to_append(file)
    assert file.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (header_line() + b'{"time":1,"type":"ADDED"}\n', "line 2: Object missing required field `object`"),
        (header_line() + b'{"time":1,"type":"LATER","object":{}}\n', "line 2: Invalid enum value"),
        (header_line() + b'{"time":1,"type":"ADDED","object":{"kind":"A"}}\n', "line 2: not an object"),
        (header_line() + b'{"time":1,"type":"ADDED","object":' + b"[" * 20_000 + b"\n", "line 2: exceeded max depth"),
        (b'{"kind":"List"}\n', "not a recording"),
        (b'{"kind":"List",\n', "not a recording"),
        (b"text", "neither a recording nor a trace"),
        (msgspec.msgpack.encode({"version": 2, "events": [{"ts": 1, "applied_objs": [3]}]}), "neither a recording"),
        (msgspec.msgpack.encode({"version": 2, "events": [{"ts": 1, "applied_objs": [{}]}]}), "at 1: not an object"),
        (trace_of({**OBJECT, "data": nested(600)}), "at 1: not an object"),
        (trace_of({**OBJECT, "data": {"a": msgspec.msgpack.Ext(5, b"x")}}), "at 1: not an object"),
    ],
)
def test_bad_recordings_are_named(tmp_path: Path, data: bytes, problem: str) -> None:
    file = tmp_path / "day.rec"
    file.write_bytes(data)
    with pytest.raises(DumpError, match=problem):
        list(read_changes(file))


def test_traces_of_simkube_are_read(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    other = {**OBJECT, "metadata": {"name": "b"}}
    events = [
        {"ts": 10, "applied_objs": [OBJECT, other], "deleted_objs": []},
        {"ts": 20, "applied_objs": [OBJECT], "deleted_objs": [other]},
    ]
    lifecycles = {(("apps", "v1", "Deployment"), "team/a"): {7: ["Finished"]}}
    trace = {"version": 2, "config": {}, "events": events, "index": {}, "pod_lifecycles": lifecycles}
    file.write_bytes(msgspec.msgpack.encode(trace))
    found = [(each.time, each.type, each.object["metadata"]["name"]) for each in read_changes(file)]
    assert found == [(10, "ADDED", "a"), (10, "ADDED", "b"), (20, "MODIFIED", "a"), (20, "DELETED", "b")]
