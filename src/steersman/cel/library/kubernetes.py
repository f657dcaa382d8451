"""The common environment of all expressions of Kubernetes (apiserver `cel/environment`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from steersman.cel.environment import Environment
from steersman.cel.library.addresses import CIDRS, IPS
from steersman.cel.library.authorizer import AUTHORIZATION
from steersman.cel.library.comprehensions import COMPREHENSIONS
from steersman.cel.library.formats import FORMATS
from steersman.cel.library.kubernetes_lists import KUBERNETES_LISTS
from steersman.cel.library.kubernetes_regex import KUBERNETES_REGEX
from steersman.cel.library.lists import LISTS
from steersman.cel.library.optionals import OPTIONALS
from steersman.cel.library.quantities import QUANTITIES
from steersman.cel.library.semvers import SEMVERS
from steersman.cel.library.sets import SETS
from steersman.cel.library.strings import STRINGS
from steersman.cel.library.urls import URLS
from steersman.cel.standard import STANDARD, STRICT_LITERALS

LIBRARIES: Final = (
    STANDARD,
    URLS,
    KUBERNETES_REGEX,
    KUBERNETES_LISTS,
    AUTHORIZATION,
    OPTIONALS,
    QUANTITIES,
    STRICT_LITERALS,
    STRINGS,
    SETS,
    IPS,
    CIDRS,
    FORMATS,
    COMPREHENSIONS,
    SEMVERS,
    LISTS,
)


@cache
def base_environment() -> Environment:
    """Return the environment of new expressions in version 1.36, without variables.

    New expressions may only use libraries of version 1.35, so that they remain valid after a rollback. Stored
    expressions may use all libraries. No library is newer than 1.34, so both environments are the same.
    """
    return Environment(LIBRARIES)
