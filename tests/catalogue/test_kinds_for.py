"""The kinds that rules of policies select by the names of resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from steersman.catalogue.catalogue import Catalogue
from steersman.catalogue.kinds_for import MAX_TYPES, ResourceKinds, listed_versions
from steersman.machinery.codec.serializer import encode
from tests.catalogue.resources import resource
from tests.unasked import unasked


@dataclass
class Rule:
    api_groups: list[str] = field(default_factory=lambda: ["e.x"])
    api_versions: list[str] = field(default_factory=lambda: ["v1"])
    resources: list[str] = field(default_factory=list)


@pytest.fixture
def catalogue() -> Catalogue:
    shared: Any = SimpleNamespace()
    found = Catalogue(shared)
    for each in (
        resource("foos", "v1", "v2", kind="Foo"),
        resource("bars", kind="Bar", singular="baz"),
        resource("foos", group="other.x", kind="Foo"),
        *(resource(f"many{number}s", group="many.x", kind=f"Many{number:02}") for number in range(20)),
    ):
        found.put(*unasked(each))
    return found


def kinds(catalogue: Catalogue, *rules: Rule) -> list[str]:
    return [
        f"{each.group}/{each.version} {each.kind}"
        for each in ResourceKinds(listed_versions(catalogue)).kinds_for(rules)
    ]


@pytest.mark.parametrize("name", ["foos", "foo", "Foos", "FOO"])
def test_a_resource_is_known_by_its_plural_and_its_singular_in_any_case(catalogue: Catalogue, name: str) -> None:
    assert kinds(catalogue, Rule(resources=[name])) == ["e.x/v1 Foo"]


def test_a_singular_that_is_given_is_known_and_the_guessed_one_is_not(catalogue: Catalogue) -> None:
    assert kinds(catalogue, Rule(resources=["baz"])) == ["e.x/v1 Bar"]
    assert kinds(catalogue, Rule(resources=["bar"])) == []


def test_lists_are_known_as_client_go_guesses_them(catalogue: Catalogue) -> None:
    assert kinds(catalogue, Rule(resources=["foolists"])) == ["e.x/v1 FooList"]
    assert kinds(catalogue, Rule(resources=["list"])) == ["e.x/v1 List"]


def test_no_group_is_any_group(catalogue: Catalogue) -> None:
    assert kinds(catalogue, Rule([""], resources=["foos"])) == ["e.x/v1 Foo", "other.x/v1 Foo"]


def test_kinds_come_in_order_and_once(catalogue: Catalogue) -> None:
    both = Rule(["other.x", "e.x"], ["v2", "v1"], ["foos", "foos"])
    assert kinds(catalogue, both, both) == ["e.x/v1 Foo", "e.x/v2 Foo", "other.x/v1 Foo"]


@pytest.mark.parametrize(
    "rule",
    [
        Rule(["*"], resources=["foos"]),
        Rule(["e.x", "*"], resources=["foos"]),
        Rule(api_versions=["*"], resources=["foos"]),
        Rule(resources=["*"]),
        Rule(resources=["foos/status", "*/scale"]),
        Rule(["e"], resources=["foos"]),
        Rule(api_versions=["v3"], resources=["foos"]),
        Rule(resources=["nothings"]),
    ],
)
def test_wildcards_subresources_and_what_is_not_served_lead_nowhere(catalogue: Catalogue, rule: Rule) -> None:
    assert kinds(catalogue, rule) == []


def test_a_rule_leads_to_ten_kinds_at_most_and_ends_the_search_then(catalogue: Catalogue) -> None:
    many = Rule(["many.x"], resources=[f"many{number}s" for number in range(20)])
    found = kinds(catalogue, many, Rule(resources=["bars"]))
    # in the order of the names as texts: many0s, many10s, many11s, and many1s after many18s
    assert found == [f"many.x/v1 Many{number:02}" for number in (0, *range(10, 19))]
    assert len(found) == MAX_TYPES
    few = [Rule(["many.x"], resources=[f"many{number}s"]) for number in range(15)]
    assert len(kinds(catalogue, *few)) == 15


def test_names_that_are_there_several_times_count_as_often(catalogue: Catalogue) -> None:
    assert kinds(catalogue, Rule(resources=["bars"] * 10), Rule(resources=["foos"])) == ["e.x/v1 Bar"]
    assert len(kinds(catalogue, Rule(resources=["bars"] * 9), Rule(resources=["foos"]))) == 2


def test_names_of_many_groups_versions_and_resources_are_not_tried_with_each_other(catalogue: Catalogue) -> None:
    """Otherwise 10^12 names would be looked up."""
    many = [f"x{number}" for number in range(10_000)]
    assert kinds(catalogue, Rule([*many, "e.x"], [*many, "v1"], [*many, "bars"])) == ["e.x/v1 Bar"]
    assert kinds(catalogue, Rule(["e.x"] * 10_000, ["v2"] * 10_000, ["bars"] * 10_000)) == []


def test_resources_of_other_servers_are_known_by_what_they_tell(catalogue: Catalogue) -> None:
    told = [
        {"resource": "things", "singularResource": "thing", "responseKind": {"kind": "Thing"}},
        {"resource": "plains", "responseKind": {"kind": "Plain"}},
        {"resource": "nothings"},
    ]
    catalogue.declare("far.x", "v1", encode({"version": "v1", "resources": told}))
    rule = Rule(["far.x"], resources=["thing", "plain", "plains", "nothings", "plainlist"])
    assert kinds(catalogue, rule) == ["far.x/v1 Plain", "far.x/v1 PlainList", "far.x/v1 Thing"]
