"""Authorization: random roles, bindings, policies and nodes, with access reviews and attempts of users."""

from .cases import aggregated_cases, cases
from .policy_file import policy_file

__all__ = ["aggregated_cases", "cases", "policy_file"]
