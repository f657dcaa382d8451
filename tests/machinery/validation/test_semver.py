"""Semantic versions: what they are, and their order."""

from __future__ import annotations

import pytest

from steersman.machinery.validation.semver import ZERO, Semver, parse_semver


def version(text: str) -> Semver:
    semver = parse_semver(text)
    assert semver is not None, text
    return semver


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "v1.2.3",
        "01.2.3",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3-a..b",
        "1.2.3+",
        "1.2.3 ",
        "1.2.x",
        f"1.2.{2**64}",
    ],
)
def test_what_is_no_version(text: str) -> None:
    assert parse_semver(text) is None


def test_versions_are_in_order_of_precedence() -> None:
    texts = [
        "1.0.0-0",
        "1.0.0-9",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-rc.2",
        "1.0.0",
    ]
    texts += ["1.0.1", "1.2.0", "1.10.0", "2.0.0-a", "2.0.0"]
    found = [version(text) for text in texts]
    assert sorted(found) == found
    assert len(set(found)) == len(found)


def test_build_metadata_does_not_count() -> None:
    assert version("1.2.3+a.b-c") == version("1.2.3")
    assert version("0.0.0") == ZERO < version("0.0.1")
