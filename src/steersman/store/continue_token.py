"""Continue tokens: where a paged list goes on (k8s.io/apiserver `storage/continue.go`)."""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from steersman.machinery.errors import StatusError, bad_request, expired

_VERSION: Final = "meta.k8s.io/v1"
_LONGEST: Final = 8192


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


_DECODER: Final = msgspec.json.Decoder(_Token)


def encode(key: str, prefix: str, revision: int) -> str:
    """A token that goes on after `key` (which is below `prefix`) at `revision`; -1 goes on at the newest."""
    start = key.removeprefix(prefix) + "\0"
    data = msgspec.json.encode(_Token(_VERSION, revision, start))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(token: str, prefix: str) -> tuple[str, int]:
    """The key to start at and the revision (-1: the newest) of a token. Raises StatusError 400."""
    try:
        if len(token) > _LONGEST:
            raise ValueError("token too long")
        data = base64.urlsafe_b64decode(token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4))
    except ValueError as error:
        raise _invalid(str(error)) from None
    try:
        parsed = _DECODER.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _invalid(_unreadable(data)) from None
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


def _unreadable(data: bytes) -> str:
    """As Go says that something is no JSON: by its first character."""
    if not data:
        return "unexpected end of JSON input"
    code = data[0]
    char = f"'{chr(code)}'" if 0x20 <= code < 0x7F else f"'\\u{code:04x}'"
    return f"invalid character {char} looking for beginning of value"


def expired_page(token: str) -> StatusError:
    """410 for a page whose revision is gone; `token` goes on at the newest revision, inconsistently."""
    error = expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.continue_token = token
    return error


def expired_list() -> StatusError:
    """410 for a list at a revision that is gone."""
    return expired("The resourceVersion for the provided list is too old.")
