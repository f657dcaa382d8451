"""Masks for text that differs between equal runs."""

from __future__ import annotations

import pytest

from steersman.stress.masking import Masker


@pytest.mark.parametrize(
    ("name", "masked"),
    [
        ("web-7c5ddbdf54", "web-*"),
        ("web-7c5ddbdf54-x2k9z", "web-*-*"),
        ("web-1978a5b6e3-7c5ddbdf54-x2k9z", "web-*-*-*"),
        ("job-3fa9c1", "job-*"),
        ("backup-1712345678", "backup-*"),
        ("pvc-0d9d5e5a-8c3f-4a8e-9a59-0c2a5d1f3b7e", "pvc-*"),
        ("csi-0d9d5e5a8c3f4a8e9a590c2a5d1f3b7e0d9d5e5a8c3f4a8e9a590c2a5d1f3b7e", "csi-*"),
        ("my-config", "my-config"),
        ("kube-root-ca.crt", "kube-root-ca.crt"),
        ("web-0", "web-0"),
        ("worker-12", "worker-12"),
    ],
)
def test_random_suffixes_of_names_are_masked(name: str, masked: str) -> None:
    assert Masker().name(name) == masked


def test_a_prefix_that_was_learned_masks_any_suffix_of_five_characters() -> None:
    masker = Masker()
    assert masker.name("test-aeiou") == "test-aeiou"
    masker.learn("test-")
    assert masker.name("test-aeiou") == "test-*"
    assert masker.name("test-longer") == "test-longer"
    assert masker.generated("test-") == "test-*"
    masker.learn("web-7c5ddbdf54-")
    assert masker.name("web-7c5ddbdf54-aeiou") == masker.generated("web-7c5ddbdf54-") == "web-*-*"
    masker.learn("test")
    assert masker.name("testaeiou") == masker.generated("test") == "test*"


def test_uids_and_times_in_text_are_masked() -> None:
    text = "pod 0d9d5e5a-8c3f-4a8e-9a59-0c2a5d1f3b7e started at 2026-01-02T03:04:05.678Z (2026-01-02 03:04:05+00:00)"
    assert Masker().text(text) == "pod <uid> started at <time> (<time>)"
