"""Index of faults by the exact words of their match, so that a request is compared only with those that may hit it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final, Generic, TypeVar

from steersman.faults.patterns import Patterns, ResourcePatterns
from steersman.machinery.identity.action import Action

Key = tuple[str, ...]
"""Words that a request must have; "" stands for any word."""
F = TypeVar("F")

MOST_KEYS: Final = 64
"""Keys of a fault with both resources and verbs; one with more of them has only its resources as keys."""


class FaultIndex(Generic[F]):
    """Faults by their keys, in the order in which they were added."""

    def __init__(self) -> None:
        self._by_key: dict[Key, dict[int, F]] = {}
        """Faults of each key by their numbers, which grow."""
        self._keys: dict[F, tuple[int, frozenset[Key]]] = {}
        """Number and keys of each fault."""
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, fault: F, keys: Iterable[Key]) -> None:
        """Add a fault behind all others, under each of its keys."""
        number, own = next(self._numbers), frozenset(keys)
        self._keys[fault] = number, own
        for key in own:
            self._by_key.setdefault(key, {})[number] = fault

    def remove(self, fault: F) -> None:
        """Remove a fault. Does nothing if it is not there."""
        number, keys = self._keys.pop(fault, (0, frozenset[Key]()))
        for key in keys:
            faults = self._by_key[key]
            del faults[number]
            if not faults:
                del self._by_key[key]

    def find(self, keys: Iterable[Key]) -> Sequence[F]:
        """Return the faults that have one of some keys, each once, in the order in which they were added."""
        found = [faults for key in keys if (faults := self._by_key.get(key))]
        if len(found) < 2:
            return tuple(found[0].values()) if found else ()
        merged = {number: fault for faults in found for number, fault in faults.items()}
        return [merged[number] for number in sorted(merged)]


def keys_of_match(resources: ResourcePatterns, verbs: Patterns) -> list[Key]:
    """Return the keys of a fault of requests: resource, subresource and verb."""
    parts, words = resources.exact or (("", ""),), verbs.exact or ("",)
    if len(parts) * len(words) > MOST_KEYS:
        words = ("",)
    return [(*each, verb) for each in parts for verb in words]


def keys_of_action(action: Action) -> list[Key]:
    """Return the keys under which faults of a request may be."""
    verb, resource, subresource = action.verb, action.resource, action.subresource
    keys: list[Key] = [(resource, subresource, verb), (resource, subresource, ""), ("", "", verb), ("", "", "")]
    if action.group:
        full = f"{resource}.{action.group}"
        keys += (full, subresource, verb), (full, subresource, "")
    return keys


def keys_of_lists(lists: dict[str, Patterns]) -> list[Key]:
    """Return the keys of a fault of calls or kubelets, whose patterns are in lists with names: list and word."""
    return [(name, word) for name, patterns in lists.items() for word in patterns.exact or ("",)]


def keys_of_names(kind: str, names: Iterable[str]) -> list[Key]:
    """Return the keys under which faults of a call or a kubelet with some names may be; `kind` is its list."""
    return [(kind, ""), *((kind, name) for name in names)]
