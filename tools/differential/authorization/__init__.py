"""Who may do what: random roles, bindings, policies and nodes, and what they let users do, asked and tried."""

from .cases import aggregated_cases, cases
from .policy_file import policy_file

__all__ = ["aggregated_cases", "cases", "policy_file"]
