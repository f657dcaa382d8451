"""Any data of kubelets and clients in a command's streams: the translation itself never fails."""

from __future__ import annotations

import pytest

from steersman.endpoints.proxy import stream_translator

DEEP = b"[" * 100_000


class Resize:
    def __init__(self) -> None:
        self.sent = b""

    async def write(self, data: bytes) -> None:
        self.sent += data


@pytest.mark.parametrize(
    ("told", "passed"),
    [
        (b'{"Width":80,"Height":24}', b'{"Width":80,"Height":24}\n'),
        (b'{"Width":65535}', b'{"Width":65535,"Height":0}\n'),
        (b'{"Width":null}', b'{"Width":0,"Height":0}\n'),
        (b'{"Width":1e999}', b""),
        (b'{"Width":65536}', b""),
        (b'{"Width":-1}', b""),
        (b'{"Width":1.5}', b""),
        (b'{"Width":"80"}', b""),
        (b'{"Width":\xff}', b""),
        (b'{"x":' + DEEP, b""),
        (DEEP, b""),
        (b"[]", b""),
        (b"", b""),
    ],
)
async def test_only_sizes_of_terminals_are_passed_on(told: bytes, passed: bytes) -> None:
    resize = Resize()
    assert await stream_translator.pass_size(resize, told) is bool(passed)
    assert resize.sent == passed


EXIT = b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":%b}}'


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (EXIT % b'[{"reason":"ExitCode","message":"3"}]', "command terminated with exit code 3"),
        (EXIT % b'[null,{"reason":"x"},{"reason":"ExitCode","message":"3"}]', "command terminated with exit code 3"),
        (EXIT % b"null", "error stream protocol error: no ExitCode cause given"),
        (EXIT % b"[1]", "error stream protocol error: "),
        (EXIT % b'"x"', "error stream protocol error: "),
        (EXIT % b'[{"reason":"ExitCode","message":3}]', "error stream protocol error: "),
        (EXIT % b'[{"reason":"ExitCode","message":"%b"}]' % (b"9" * 5000), "invalid exit code value"),
        (b'{"status":"Failure","reason":"NonZeroExitCode"}', "details must be set"),
        (b'{"status":"Failure","message":"\\ud800"}', "error stream protocol error: "),
        (b'{"status":"Failure","message":{}}', "error stream protocol error: "),
        (b'{"status":1}', "error stream protocol error: "),
        (b'{"a":' + DEEP, "error stream protocol error: "),
        (b"\xff", "error stream protocol error: "),
    ],
)
def test_whatever_the_error_stream_says_is_a_failure_in_words(status: bytes, message: str) -> None:
    with pytest.raises((stream_translator.Failed, stream_translator.NonZeroExit), match=message) as caught:
        stream_translator.raise_for_status(status, "v5.channel.k8s.io")
    str(caught.value).encode()


class Refusal:
    def __init__(self, body: bytes) -> None:
        self.body = body

    async def read(self, limit: int) -> bytes:
        return self.body[:limit]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"message":" no "}', "no"),
        (b'{"error":"no"}', "no"),
        (b'{"message":3,"error":"no"}', "no"),
        (b"plain", "plain"),
        (b"", "empty server response"),
        (b"[1]", "[1]"),
        (DEEP, DEEP.decode()),
    ],
)
async def test_a_refusal_is_told_whatever_it_is(body: bytes, text: str) -> None:
    assert await stream_translator.refusal_text(Refusal(body)) == text


async def test_a_refusal_with_half_a_surrogate_can_be_sent_on() -> None:
    (await stream_translator.refusal_text(Refusal(b'{"message":"\\ud800"}'))).encode()
