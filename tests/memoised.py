"""Memoised functions under test: each fails for a key that is longer than its bound.

`watch` is called before anything of Steersman is imported, as decorators are applied then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

LONGEST = 16 << 10
"""Most characters and bytes in the key of a function without a bound in LONGER."""
LONGER = {
    "cel.pattern_size._measured": 300_000,  # of 16 patterns, none of which is larger than RE2 is let read
    "cel.regular.compile_long_pattern": 300_000,  # of 8; what is compiled of one takes more
    "schema.patterns._large_finder": 300_000,  # of 32; the same
    "webhooks.client_config._shared_tls": 3 << 20,  # of 128 authorities, which administrators write
}
"""Functions that may keep a few longer keys, with the bound of a key."""

functions: dict[str, Callable[..., Any]] = {}
"""Memoised functions of the package by name, without the name of the package."""
feeds: list[str] = []
"""Running tests that feed functions with long texts on purpose: nothing is memoised meanwhile."""
faults: list[str] = []
"""Calls with too long keys that no test has reported yet."""


def length(key: Any) -> int:
    """Count the characters and bytes that memoising `key` keeps."""
    if isinstance(key, str | bytes):
        return len(key)
    if isinstance(key, tuple | frozenset):
        return sum(map(length, key))
    return 0


class _NotKeptError(Exception):
    """A result must not be kept, as its key is long and a test feeds long texts on purpose."""


def _watched(function: Callable[..., Any], memoise: Callable[..., Any]) -> Any:
    """Return a function memoised by `memoise`, whose keys are measured when they are new."""
    name = f"{function.__module__}.{function.__qualname__}".removeprefix("steersman.")
    longest = LONGER.get(name, LONGEST)

    @functools.wraps(function)
    def measured(*args: Any, **kwargs: Any) -> Any:
        if length((*args, *kwargs.values())) > longest:
            if feeds:
                raise _NotKeptError
            faults.append(name)
            raise AssertionError(f"{name} would remember a key of {length((*args, *kwargs.values()))} characters")
        return function(*args, **kwargs)

    memoised = memoise(measured)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return memoised(*args, **kwargs)
        except _NotKeptError:
            pass
        return function(*args, **kwargs)

    call.memoised = memoised  # type: ignore[attr-defined]
    call.cache_info = memoised.cache_info  # type: ignore[attr-defined]
    call.cache_clear = memoised.cache_clear  # type: ignore[attr-defined]
    call.cache_parameters = memoised.cache_parameters  # type: ignore[attr-defined]
    functions[name] = call
    return call


def watch() -> None:
    """Check every function of the package that is memoised from now on."""
    original = functools.lru_cache

    def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
        if callable(maxsize):
            return lru_cache()(maxsize)

        def decorate(function: Callable[..., Any]) -> Any:
            memoise = original(maxsize, typed)
            is_ours = getattr(function, "__module__", "").startswith("steersman.")
            return _watched(function, memoise) if is_ours else memoise(function)

        return decorate

    def cache(function: Callable[..., Any]) -> Any:
        return lru_cache(None)(function)

    functools.lru_cache = lru_cache
    functools.cache = cache
