"""Calls of users' code, which must not end the server nor produce values that JSON cannot represent."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import typing
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from steersman.work.offloading import expect_offloading

_SETS: Final = (set, frozenset, AbstractSet, typing.AbstractSet)


class UserCodeFailed(RuntimeError):
    """Raised for user code that tried to end the program, or raised an exception that is no Exception."""


@contextmanager
def kept_running(where: str, *, may_wait: bool = False) -> Iterator[None]:
    """Turn an exception that would end the server (SystemExit, KeyboardInterrupt, any other BaseException) into
    UserCodeFailed.

    `where` names the code. With `may_wait` the code can be cancelled, and the cancellation passes through.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if may_wait and isinstance(error, asyncio.CancelledError | GeneratorExit):
            raise
        raise UserCodeFailed(f"{where} has raised {type(error).__name__}, which does not end the server") from error


@contextmanager
def computing(where: str) -> Iterator[None]:
    """Protect the server as `kept_running` does, during a hook that computes within `offload`."""
    expect_offloading()
    with kept_running(where):
        yield


class NoJson(ValueError):
    """Raised for a value in an instance that JSON cannot represent; the text names position and value."""


def check_values(instance: Any) -> None:
    """Check the values that user code has put into an instance.

    Raises NoJson for numbers that are not finite, and for sets in fields of other types, whose order would vary.
    """
    _check(instance, "", allows_sets=False)


def _check(value: Any, path: str, *, allows_sets: bool) -> None:
    if value is None or isinstance(value, str | bool | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NoJson(f"{path} is {value}, a number that JSON does not have")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _check(each, f"{path}[{key}]", allows_sets=allows_sets)
    elif isinstance(value, AbstractSet):
        if not allows_sets:
            raise NoJson(f"{path} is a {type(value).__name__} and its field is none: make a list of it, in an order")
        for each in value:
            _check(each, path, allows_sets=False)
    elif isinstance(value, Sequence):
        if not isinstance(value, bytes | bytearray):
            for number, each in enumerate(value):
                _check(each, f"{path}[{number}]", allows_sets=allows_sets)
    else:
        model: Any = type(value)
        for name, allowed in _fields(model):
            _check(getattr(value, name, None), f"{path}.{name}" if path else name, allows_sets=allowed)


@lru_cache(1024)
def _fields(model: type[Any]) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a class, each with True if its annotation contains a set."""
    if issubclass(model, msgspec.Struct):
        names: Sequence[str] = model.__struct_fields__
    elif dataclasses.is_dataclass(model):
        names = [each.name for each in dataclasses.fields(model)]
    else:
        names = list(getattr(model, "model_fields", ()))
    if not names:
        return ()
    hints = get_type_hints(model)
    return tuple((name, _names_a_set(hints.get(name))) for name in names)


def _names_a_set(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    return origin in _SETS or any(_names_a_set(each) for each in get_args(annotation) if not isinstance(each, str))
