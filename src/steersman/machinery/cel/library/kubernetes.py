"""The environment that all expressions of Kubernetes share (apiserver `cel/environment`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from steersman.machinery.cel.environment import Environment
from steersman.machinery.cel.library.addresses import CIDRS, IPS
from steersman.machinery.cel.library.authorizer import AUTHORIZATION
from steersman.machinery.cel.library.comprehensions import COMPREHENSIONS
from steersman.machinery.cel.library.formats import FORMATS
from steersman.machinery.cel.library.kubernetes_lists import KUBERNETES_LISTS
from steersman.machinery.cel.library.kubernetes_regex import KUBERNETES_REGEX
from steersman.machinery.cel.library.lists import LISTS
from steersman.machinery.cel.library.optionals import OPTIONALS
from steersman.machinery.cel.library.quantities import QUANTITIES
from steersman.machinery.cel.library.semvers import SEMVERS
from steersman.machinery.cel.library.sets import SETS
from steersman.machinery.cel.library.strings import STRINGS
from steersman.machinery.cel.library.urls import URLS
from steersman.machinery.cel.standard import STANDARD, STRICT_LITERALS

_LIBRARIES: Final = (
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
    """What version 1.36 lets new expressions use, without variables.

    New expressions may use what version 1.35 knew already, so that they outlive a rollback, stored ones what any
    version knows. No library is newer than 1.34, so that both have the same.
    """
    return Environment(_LIBRARIES)
