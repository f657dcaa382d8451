"""Counts of pods and uses of terms, found by labels and namespaces, equal those computed from all pods."""

from __future__ import annotations

from random import Random

import pytest

from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.selectors.labels import NOTHING, Selector, new_requirement
from steersman.scheduler.demand.affinity_terms import AffinityTerm, PodSelection
from steersman.scheduler.state.node_info import PodInfo
from steersman.scheduler.state.pod_counts import CountedPods, PodCounts, TermUses
from tests.example_counts import examples

SPACES = {"one": {"team": "a"}, "two": {"team": "b"}, "three": {}}


def selector_of(chance: Random) -> Selector:
    requirements = []
    for key in chance.sample("abc", chance.randrange(3)):
        operator = chance.choice(["in", "notin", "exists", "!", "="])
        count = 0 if operator in ("exists", "!") else 1 if operator == "=" else chance.randint(1, 3)
        requirements.append(new_requirement(key, operator, chance.sample("xyz", count)))
    return Selector(requirements)


def selection_of(chance: Random) -> PodSelection:
    namespaces = frozenset(chance.sample(sorted(SPACES), chance.randint(1, 2)))
    by_labels = chance.choice([NOTHING, NOTHING, Selector(), Selector([new_requirement("team", "in", ["a"])])])
    return PodSelection(namespaces, by_labels, selector_of(chance))


def pod_of(chance: Random, number: int) -> PodInfo:
    labels = {key: chance.choice("xyz") for key in chance.sample("abc", chance.randrange(4))}
    metadata = ObjectMeta(name=f"p{number}", namespace=chance.choice(sorted(SPACES)), uid=str(number), labels=labels)
    return PodInfo(Pod(metadata=metadata))


@pytest.mark.parametrize("seed", range(examples(30)))
def test_counts_and_uses(seed: int) -> None:
    chance = Random(seed)
    counts = PodCounts(lambda namespace: SPACES[namespace])
    uses = TermUses()
    here: dict[PodInfo, int] = {}
    held = []
    terms: list[AffinityTerm] = []
    for number in range(120):
        match chance.randrange(4):
            case 0 | 1:
                info = pod_of(chance, number)
                here[info] = chance.randrange(4)
                counts.change(info, here[info], 1)
            case 2 if here:
                info = chance.choice(list(here))
                counts.change(info, here.pop(info), -1)
            case _:
                held.append(counts.count_of(CountedPods((selection_of(chance),))))
                term = AffinityTerm(selection_of(chance), "zone")
                if terms and chance.random() < 0.4:
                    uses.change(terms.pop(chance.randrange(len(terms))), 1, 0, -1)
                uses.change(term, 1, 0, 1)
                terms.append(term)
        if held and chance.random() < 0.2:
            held.pop(chance.randrange(len(held)))
    for count in held:
        (selection,) = count.counted.selections
        expected: dict[int, int] = {}
        for info, index in here.items():
            metadata = info.pod.metadata
            if selection.matches(metadata.namespace, metadata.labels, SPACES[metadata.namespace]):
                expected[index] = expected.get(index, 0) + 1
        assert count.on_node == expected
    for info in here:
        metadata = info.pod.metadata
        namespace_labels = SPACES[metadata.namespace]
        terms_selecting = uses.terms_selecting(metadata.namespace, metadata.labels, namespace_labels)
        assert len(terms_selecting) == len(set(terms_selecting))
        assert set(terms_selecting) == {
            each for each in terms if each.pods.matches(metadata.namespace, metadata.labels, namespace_labels)
        }
