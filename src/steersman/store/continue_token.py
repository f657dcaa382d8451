"""Continue tokens: where a paged list goes on (k8s.io/apiserver `storage/continue.go`)."""

from __future__ import annotations

import base64
import binascii
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
            raise ValueError(token)
        data = base64.urlsafe_b64decode(token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4))
        parsed = _DECODER.decode(data)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise bad_request("continue key is not valid: illegal base64 data or token") from None
    if parsed.v != _VERSION:
        raise bad_request(f'continue key is not valid: server does not recognize this encoded version "{parsed.v}"')
    if parsed.rv == 0:
        raise bad_request("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not parsed.start:
        raise bad_request("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    start = parsed.start.lstrip("/")
    if ".." in start.split("/") or "" in start.rstrip("\0").split("/"):
        raise bad_request("continue key is not valid: invalid encoded start key")
    return prefix + start, parsed.rv


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
