"""The error for a declaration that cannot be served."""

from __future__ import annotations


class DefinitionError(ValueError, TypeError):
    """Raised for a class that cannot be served, or whose CustomResourceDefinition kube-apiserver would refuse.

    The text names the class, the position in it, and the reason. The error is a TypeError too, as most wrong
    declarations have a wrong type.
    """
