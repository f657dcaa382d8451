"""Continue tokens of paged lists (k8s.io/apiserver `storage/continue.go`)."""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from steersman.machinery.codec.go_json import unmarshal
from steersman.machinery.codec.go_types import GoMember, GoType
from steersman.machinery.codec.serializer import from_plain
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors.status import StatusError, bad_request, expired
from steersman.work.patterns import late_pattern

_VERSION: Final = "meta.k8s.io/v1"
_LONGEST: Final = 8192


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


_DECODER: Final = msgspec.json.Decoder(_Token)
_MEMBERS: Final = {"v": GoType("string", "string"), "rv": GoType("int64", "int64"), "start": GoType("string", "string")}
_TOKEN: Final = GoType(
    "struct", "storage.continueToken", members={name: GoMember(type_, ()) for name, type_ in _MEMBERS.items()}
)
_BASE64: Final = late_pattern(r"[A-Za-z0-9_\r\n-]*")


def encode(key: str, prefix: str, revision: int) -> str:
    """Return a token that continues after `key` (which is below `prefix`) at `revision`; -1 means the newest revision."""
    start = key.removeprefix(prefix) + "\0"
    if not start.isascii():  # bytes that are not UTF-8, in keys of other programs, are replaced as in Go
        start = start.encode(errors="surrogateescape").decode(errors="replace")
    data = msgspec.json.encode(_Token(_VERSION, revision, start))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(token: str, prefix: str) -> tuple[str, int]:
    """Return the start key and the revision (-1 for the newest) of a token. Raises StatusError 400."""
    if len(token) > _LONGEST:
        raise _invalid("token too long")
    if (position := _not_base64(token)) is not None:
        raise _invalid(f"illegal base64 data at input byte {position}")
    data = base64.urlsafe_b64decode(token.replace("\r", "").replace("\n", "") + "==")
    try:
        parsed = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        parsed = _read_as_go_does(data)
    else:
        if parsed.v != _VERSION or not -(2**63) <= parsed.rv < 2**63:
            parsed = _read_as_go_does(data)  # names in other case, and numbers beyond int64
    if parsed.v != _VERSION:
        raise _invalid(f"server does not recognize this encoded version {parsed.v}")
    if parsed.rv == 0:
        raise _invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not parsed.start:
        raise _invalid("encoded start key empty (version meta.k8s.io/v1)")
    start = parsed.start.lstrip("/")
    if ".." in start.split("/") or "" in start.rstrip("\0").split("/"):
        raise _invalid(parsed.start)
    return prefix + start, parsed.rv


def _invalid(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _not_base64(token: str) -> int | None:
    """Return the offset at which Go's decoder of unpadded base64 fails, None if it does not."""
    match = _BASE64.match(token)
    end = match.end() if match else 0
    if end < len(token):
        return len(token[:end].encode())
    letters = len(token.replace("\r", "").replace("\n", ""))
    return len(token) - 1 if letters % 4 == 1 else None


def _read_as_go_does(data: bytes) -> _Token:
    """Decode a token that msgspec does not decode. Raises StatusError 400 with Go's message."""
    try:
        return from_plain(_Token, unmarshal(_TOKEN, data) or {})
    except DecodeError as error:
        raise _invalid(str(error)) from None


def expired_page(token: str) -> StatusError:
    """Return 410 for a page whose revision is compacted; `token` continues inconsistently at the newest revision."""
    error = expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.continue_token = token
    return error


def expired_list() -> StatusError:
    """Return 410 for a list at a compacted revision."""
    return expired("The resourceVersion for the provided list is too old.")
