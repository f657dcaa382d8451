"""Request targets with bytes that are not ASCII."""

from __future__ import annotations

from time import thread_time

import pytest

from steersman.net.http1.head import Fault, request_line, split_target

_LONG = 900_000


@pytest.mark.parametrize("unit", [b"\xff", b"ax\xff", b"\\\xff", "漢".encode(), bytes(range(128, 256))])
def test_other_bytes_become_escapes_and_cost_little(unit: bytes) -> None:
    escaped = b"".join(b"%%%02x" % byte if byte > 127 else b"%5C" if byte == 92 else bytes([byte]) for byte in unit)
    times = _LONG // len(unit)
    began = thread_time()
    target = request_line(b"GET /" + unit * times + b" HTTP/1.1")[1]
    spent = thread_time() - began
    assert target.encode() == b"/" + escaped * times
    began = thread_time()
    assert sum(map(int, unit * times))
    assert spent < (thread_time() - began) + 0.005  # an escape for each byte takes three times as long


@pytest.mark.parametrize("code", [*range(9), *range(11, 32), 127])
def test_a_control_character_stays_one(code: int) -> None:
    _, target, _, _ = request_line(b"GET /x\\\xff" + bytes([code]) + b" HTTP/1.1")
    with pytest.raises(Fault):
        split_target(target, "GET")
