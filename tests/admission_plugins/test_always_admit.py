"""Tests of AlwaysAdmit."""

from __future__ import annotations

from steersman.admission.interface import CONNECT, CREATE, DELETE, UPDATE, Chain
from steersman.admission_plugins.always_admit import AlwaysAdmit


def test_it_is_asked_nothing() -> None:
    chain = Chain((AlwaysAdmit(),))
    assert not any(chain.handles(each) for each in (CREATE, UPDATE, DELETE, CONNECT))
