"""The providers that a configuration names."""

from __future__ import annotations

import base64
import sys

import pytest

from steersman.storage.encryption.configuration import ConfigurationError
from tests.storage.encryption.configured import of_resources, providers_of

SECRETBOX = {"secretbox": {"keys": [{"name": "one", "secret": base64.b64encode(b"1" * 32).decode()}]}}


async def test_secretbox_without_pynacl_is_refused_with_the_name_of_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nacl.secret", None)
    with pytest.raises(ConfigurationError, match=r"need the package PyNaCl.*steersman\[secretbox\]"):
        async with providers_of(of_resources("secrets", providers=[SECRETBOX])):
            pass
