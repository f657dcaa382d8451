"""Priority and fairness: what may be configured, whose turn which request is, how many seats it takes, who waits."""

from .cases import cases, validation
from .population import populate

__all__ = ["cases", "populate", "validation"]
