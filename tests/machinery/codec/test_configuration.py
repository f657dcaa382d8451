"""Configuration documents: faults are reported as one error, in the words of the document's version."""

from __future__ import annotations

from typing import Annotated

import pytest
from msgspec import Meta

from steersman.api.apiserver.v1 import AuthenticationConfiguration
from steersman.api.apiserver.v1beta1 import EgressSelectorConfiguration
from steersman.api.core.v1 import Toleration
from steersman.api.scalars import Wire
from steersman.machinery.codec.configuration import Document, MissingKindError, read_document
from steersman.machinery.codec.derived_types import GO_TYPE
from steersman.machinery.codec.strict import DecodeError


class Part(Wire):
    size: Annotated[str, Meta(extra={GO_TYPE: "Size"})] = ""
    tolerations: list[Toleration] = []


class Any(Document):
    names: list[str] = []
    part: Part | None = None
    parts: list[Part] | None = None


class AnyV1Alpha1(Document):
    names: list[str] = []


_KINDS: dict[tuple[str, str], type[Any | AnyV1Alpha1]] = {
    ("v1", "Any"): Any,
    ("x/v1beta1", "Any"): Any,
    ("x/v1alpha1", "Any"): AnyV1Alpha1,
}
_HEAD = b"kind: Any\napiVersion: x/v1beta1\n"


def why(data: bytes) -> str:
    """Return the error of reading a document that is refused."""
    with pytest.raises(DecodeError) as caught:
        read_document(data, _KINDS)
    return str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"- a\n" * 100_000,
        b'{"kind":"Any","apiVersion":"v1","names":' + b"[" * 100_000,
        b"kind: Any\napiVersion: v1\nnames: " + b"[" * 100_000,
        b"kind: Any\napiVersion: v1\nnames: &a [" + b"b, " * 1000 + b"]\nmore: [" + b"*a, " * 1000 + b"]",
        b"\xff\xfe",
        b"",
    ],
)
def test_what_has_too_much_is_refused_as_what_cannot_be_read(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_document(data, _KINDS)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"part: 5", "number into Go struct field Any.part of type v1beta1.Part"),
        (b"parts: 5", "number into Go struct field Any.parts of type []v1beta1.Part"),
        (b"part: {size: 5}", "number into Go struct field Part.part.size of type v1beta1.Size"),
        (b"part: {tolerations: 5}", "number into Go struct field Part.part.tolerations of type []v1.Toleration"),
        (b"names: [[]]", "array into Go struct field Any.names of type string"),
    ],
)
def test_types_are_those_of_the_documents_version(data: bytes, told: str) -> None:
    assert why(_HEAD + data) == f"json: cannot unmarshal {told}"


def test_a_class_of_one_version_is_shown_without_it() -> None:
    told = why(b"kind: Any\napiVersion: x/v1alpha1\nnames: 5")
    assert told == "json: cannot unmarshal number into Go struct field Any.names of type []string"


def test_fields_that_are_not_known_or_given_twice_are_told_by_their_paths() -> None:
    assert why(_HEAD + b"part: {sise: a}") == (
        'strict decoding error: unknown field "part.sise" (known are size, tolerations, did you mean size?)'
    )
    assert why(b'{"kind":"Any","apiVersion":"v1","parts":[{"size":"a","size":"b"}]}') == (
        'strict decoding error: duplicate field "parts[0].size"'
    )
    document = read_document(_HEAD + b"part: {sise: a, size: b}", _KINDS, strict=False)
    assert document == Any(kind="Any", api_version="x/v1beta1", part=Part(size="b"))


def test_a_document_may_be_of_a_kind_by_default() -> None:
    assert read_document(b"names: [a]", _KINDS, default=("v1", "Any")) == Any(names=["a"])
    assert read_document(b"", _KINDS, default=("v1", "Any")) == Any()
    for data in (b"names: [a]", b"kind: Any", b"apiVersion: v1", b"kind: Other\napiVersion: v1"):
        with pytest.raises(MissingKindError):
            read_document(data, _KINDS)


def test_named_types_of_generated_classes_are_shown_as_upstream_shows_them() -> None:
    field = "cannot unmarshal number into Go struct field"
    for kinds, text, told in (
        (
            {("a/v1alpha1", "AuthenticationConfiguration"): AuthenticationConfiguration},
            b"jwt: [{issuer: {audienceMatchPolicy: 5}}]",
            f"{field} Issuer.jwt.issuer.audienceMatchPolicy of type v1alpha1.AudienceMatchPolicyType",
        ),
        (
            {("a/v1alpha1", "EgressSelectorConfiguration"): EgressSelectorConfiguration},
            b"egressSelections: [{connection: {proxyProtocol: 5}}]",
            f"{field} Connection.egressSelections.connection.proxyProtocol of type v1alpha1.ProtocolType",
        ),
    ):
        ((api_version, kind),) = kinds
        head = f"kind: {kind}\napiVersion: {api_version}\n".encode()
        with pytest.raises(DecodeError) as caught:
            read_document(head + text, kinds)
        assert str(caught.value) == f"json: {told}"
