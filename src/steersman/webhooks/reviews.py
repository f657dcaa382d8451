"""The answer of a webhook that is asked by a review: a review again, of the same kind and version (client-go
`rest.Result.Into`, with the codecs of apiserver `util/webhook`)."""

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
    """Return True if reading an answer may take longer than a turn of the loop should."""
    return is_large_yaml(data) if detect_media(data) == "yaml" else is_large(data)


def check_values(data: bytes, most: int) -> None:
    """Raises DecodeError for an answer that would take seconds to decode, in which nothing else can be done."""
    if data.count(b",") > most or data.count(b"[") + data.count(b"{") > most:
        found = measure(data)
        if found.commas > most or found.objects > most:
            raise DecodeError(f"the answer has more than {most} values")


def read_review(
    cls: type[R], data: bytes, group: str, version: str, kind: str, registered: frozenset[tuple[str, str]]
) -> R:
    """The review in an answer; one that does not say what it is is taken for what was asked for.

    `cls` is the class of the review in v1; `registered` are (apiVersion, kind) of what upstream can read here at all.
    Raises DecodeError with upstream's text.
    """
    media = detect_media(data)
    api_version, given = peek_type_meta(data, media)
    wanted = f"{group}/{version}"
    try:
        parse_group_version(api_version)
    except GroupVersionError as error:
        raise DecodeError(str(error)) from None
    actual = (api_version or wanted, given or kind)
    if actual not in registered:
        raise DecodeError(no_kind_registered(actual[1], actual[0]))
    found = actual[0].rpartition("/")[2]
    if media == "yaml":
        data = yaml_as_json(data)
    review = _decoded(cls, data, found, kind) if actual[1] == kind else None  # what is wrong in it is told first
    if review is None or actual != (wanted, kind):
        raise DecodeError(f"converting ({found}.{actual[1]}) to ({version}.{kind}): unknown conversion")
    return review


def _decoded(cls: type[R], data: bytes, version: str, kind: str) -> R:
    try:
        return decode_object(cls, data, "json", want_strict=False, as_sent=True, is_peeked=True).obj
    except DecodeError as error:
        if version == "v1":
            raise
        own = kind.removesuffix("Review")  # what its types begin with; those of other groups keep their version
        raise DecodeError(str(error).replace(f" v1.{own}", f" {version}.{own}")) from None
