"""Decoding of a webhook's response to a review: a review of the same kind and version.

Follows client-go `rest.Result.Into` with the codecs of apiserver `util/webhook`.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from steersman.machinery.codec.configuration import detect_media
from steersman.machinery.codec.strict import DecodeError, decode_object, peek_type_meta, yaml_as_json
from steersman.machinery.identity.schema import GroupVersionError, no_kind_registered, parse_group_version
from steersman.machinery.large_work.nesting import measure
from steersman.machinery.large_work.sizes import is_large, is_large_yaml

R = TypeVar("R", bound=msgspec.Struct)


def is_large_review(data: bytes) -> bool:
    """Return True if decoding a response may take longer than one time slice of the event loop."""
    return is_large_yaml(data) if detect_media(data) == "yaml" else is_large(data)


def check_value_count(data: bytes, most: int) -> None:
    """Raise DecodeError for a response with more than `most` values, whose decoding would block everything for seconds."""
    if data.count(b",") > most or data.count(b"[") + data.count(b"{") > most:
        found = measure(data)
        if found.commas > most or found.objects > most:
            raise DecodeError(f"the answer has more than {most} values")


def decode_review(
    cls: type[R], data: bytes, group: str, version: str, kind: str, registered: frozenset[tuple[str, str]]
) -> R:
    """Return the review in a response. A response without a kind or version is taken as the requested kind.

    `cls` is the class of the review in v1; `registered` has the (apiVersion, kind) pairs that upstream can decode here.
    Raises DecodeError with upstream's text.
    """
    media = detect_media(data)
    api_version, stated_kind = peek_type_meta(data, media)
    wanted_version = f"{group}/{version}"
    try:
        parse_group_version(api_version)
    except GroupVersionError as error:
        raise DecodeError(str(error)) from None
    actual = (api_version or wanted_version, stated_kind or kind)
    if actual not in registered:
        raise DecodeError(no_kind_registered(actual[1], actual[0]))
    found = actual[0].rpartition("/")[2]
    if media == "yaml":
        data = yaml_as_json(data)
    # Errors of decoding come before that of another version.
    review = _decode(cls, data, found, kind) if actual[1] == kind else None
    if review is None or actual != (wanted_version, kind):
        raise DecodeError(f"converting ({found}.{actual[1]}) to ({version}.{kind}): unknown conversion")
    return review


def _decode(cls: type[R], data: bytes, version: str, kind: str) -> R:
    try:
        return decode_object(cls, data, "json", want_strict=False, as_sent=True, is_peeked=True).obj
    except DecodeError as error:
        if version == "v1":
            raise
        # Prefix of this group's types; only they get the version of the response.
        own = kind.removesuffix("Review")
        raise DecodeError(str(error).replace(f" v1.{own}", f" {version}.{own}")) from None
