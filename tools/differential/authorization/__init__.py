"""Who may do what: random roles, bindings, policies and nodes, and what they let users do, asked and tried."""

from .cases import cases
from .policy_file import policy_file

__all__ = ["cases", "policy_file"]
