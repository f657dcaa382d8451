"""Structural differences of two JSON values: paths, with items of lists named by their keys.

The differences lead from one value to the other completely, also where the order of a list changes. Numbers of
different types differ. The work is linear in the size of the values, apart from the length of paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

KEYS: Final = (
    "name",
    "type",
    "key",
    "uid",
    "containerPort",
    "port",
    "ip",
    "mountPath",
    "devicePath",
    "topologyKey",
    "id",
)
"""Members that name the items of lists, in the order in which they are tried: the merge keys of the built-in kinds."""


class Key(Struct, frozen=True):
    """A step to the item of a list whose `member` has this value; for a scalar item `member` is ""."""

    member: str
    value: Any


Step = str | int | Key
"""A step of a path: the member of an object, an index of a list, or a key of a list."""


class Missing(Struct, frozen=True):
    """The value on the side of a difference that has none."""


MISSING: Final = Missing()


class Difference(Struct, frozen=True):
    """A difference at a path: the values before and after, MISSING if there is none.

    With `is_order` the values are the keys of a list in their order; the items themselves have differences of their own.
    """

    path: tuple[Step, ...]
    before: Any
    after: Any
    is_order: bool = False


def differences(before: Any, after: Any) -> Iterator[Difference]:
    """Yield the differences, each before those inside of later members."""
    pending: list[tuple[tuple[Step, ...], Any, Any]] = [((), before, after)]
    while pending:
        path, old, new = pending.pop()
        if type(old) is not type(new):
            yield Difference(path, old, new)
        elif isinstance(old, dict):
            below = []
            for name, value in old.items():
                if name not in new:
                    yield Difference((*path, name), value, MISSING)
                else:
                    below.append(((*path, name), value, new[name]))
            for name in new:
                if name not in old:
                    yield Difference((*path, name), MISSING, new[name])
            pending += reversed(below)
        elif isinstance(old, list):
            yield from _of_lists(path, old, new, pending)
        elif old != new:
            yield Difference(path, old, new)


def _of_lists(
    path: tuple[Step, ...], old: list[Any], new: list[Any], pending: list[tuple[tuple[Step, ...], Any, Any]]
) -> Iterator[Difference]:
    """Yield the differences between the items of two lists, and append pairs of items to `pending`."""
    member = key_member(old, new)
    if member is None:
        common = min(len(old), len(new))
        for index in range(len(old) - 1, common - 1, -1):
            yield Difference((*path, index), old[index], MISSING)
        for index in range(common, len(new)):
            yield Difference((*path, index), MISSING, new[index])
        pending += [((*path, index), old[index], new[index]) for index in reversed(range(common))]
        return
    olds, news = _by_key(old, member), _by_key(new, member)
    for key in olds:
        if key not in news:
            yield Difference((*path, _step(member, key)), olds[key], MISSING)
    for key in news:
        if key not in olds:
            yield Difference((*path, _step(member, key)), MISSING, news[key])
    kept = [key for key in olds if key in news]
    if [*kept, *(key for key in news if key not in olds)] != list(news):
        order = [[key[1] for key in keys] for keys in (olds, news)]
        yield Difference(path, order[0], order[1], is_order=True)
    if member:
        pending += [((*path, _step(member, key)), olds[key], news[key]) for key in reversed(kept)]


def key_member(*lists: Sequence[Any]) -> str | None:
    """Return the member that names the items of all these lists uniquely; "" for unique scalars, None without one."""
    items = [item for each in lists for item in each]
    if all(isinstance(item, str | int | bool) for item in items):
        return "" if all(len(_by_key(each, "")) == len(each) for each in lists) else None
    if not all(isinstance(item, dict) for item in items):
        return None
    for member in KEYS:
        if all(isinstance(item.get(member), str | int) for item in items) and all(
            len(_by_key(each, member)) == len(each) for each in lists
        ):
            return member
    return None


def _by_key(items: Sequence[Any], member: str) -> dict[tuple[type, Any], Any]:
    """Return the items by their key. Keys of different types differ: 1 is not True."""
    if not member:
        return {(type(item), item): item for item in items}
    return {(type(item[member]), item[member]): item for item in items}


def _step(member: str, key: tuple[type, Any]) -> Key:
    return Key(member, key[1])


def shown_path(path: Sequence[Step]) -> str:
    """Return a path as text: `.spec.containers[name=web].image`, `.metadata.labels["a.b/c"]`."""
    return "".join(map(_shown_step, path)) or "."


def _shown_step(step: Step) -> str:
    if isinstance(step, Key):
        return f"[{step.member}={_quoted(step.value)}]" if step.member else f"[{_quoted(step.value)}]"
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f'["{step}"]'


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
