"""Errors for an issuer whose discovery document names another issuer."""

from __future__ import annotations

import json

import pytest

from steersman.authentication.jwt.fetching import Document
from steersman.authentication.jwt.provider import ProviderError, discover

LONG = "a" * 900_000


@pytest.mark.parametrize(
    "document",
    [
        Document(json.dumps({"issuer": LONG}).encode(), "application/json", 0.0),
        Document(b"{", LONG, 0.0),
        Document(b"{" + LONG.encode(), "application/json", 0.0),
        Document(b'{"issuer":' * 50_000, "", 0.0),
        Document(b'{"issuer":"\xff"}', "", 0.0),
    ],
)
async def test_a_document_that_lies_makes_no_long_message(document: Document) -> None:
    async def fetch(url: str, token: str) -> Document:
        return document

    with pytest.raises(ProviderError) as refused:
        await discover("https://issuer", "", fetch)
    assert len(str(refused.value)) < 2048
