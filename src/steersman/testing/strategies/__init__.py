"""Strategies for hypothesis that draw objects a server accepts, and checks of operators that are made of them.

`custom_resources` draws objects of a CustomResourceDefinition, under its structural schema, formats, list types and CEL
rules, `built_in` objects of a built-in kind, and `nearly_valid` objects with one fault. `check_operator` carries out plans
of writes, deletions and faults against an operator, and fails if the operator does not converge. See docs/strategies.md.
"""

from steersman.work.extras import require

require("hypothesis", feature="strategies", package="hypothesis", extra="test")

from .convergence import NotConverged  # noqa: E402
from .errors import InvalidDefinition, StrategyError, UnknownKind, Unsatisfiable  # noqa: E402
from .objects import built_in, custom_resources  # noqa: E402
from .operators import check_operator  # noqa: E402
from .plans import FAULTS, Plan, plans  # noqa: E402
from .texts import durations, label_keys, label_values, names, quantities  # noqa: E402
from .violations import NearlyValid, nearly_valid  # noqa: E402

__all__ = [
    "FAULTS",
    "InvalidDefinition",
    "NearlyValid",
    "NotConverged",
    "Plan",
    "StrategyError",
    "UnknownKind",
    "Unsatisfiable",
    "built_in",
    "check_operator",
    "custom_resources",
    "durations",
    "label_keys",
    "label_values",
    "names",
    "nearly_valid",
    "plans",
    "quantities",
]
