"""Memory is given back if the C library can do so; otherwise nothing happens."""

from __future__ import annotations

import pytest

from steersman.work import memory


def test_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(memory, "malloc_trim", lambda: asked.append)
    memory.give_memory_back()
    assert asked == [0]
    monkeypatch.setattr(memory, "malloc_trim", lambda: None)
    memory.give_memory_back()
    assert asked == [0]


def test_another_c_library_has_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.malloc_trim.cache_clear()
    monkeypatch.setattr("sys.platform", "darwin")
    assert memory.malloc_trim() is None
    memory.malloc_trim.cache_clear()
