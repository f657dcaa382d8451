"""What is raised for a declaration that cannot be served."""

from __future__ import annotations


class DefinitionError(ValueError, TypeError):
    """A class declares what cannot be served, or stands for a CustomResourceDefinition that kube-apiserver would
    refuse. The text says which class, where in it, and why.

    It is a TypeError too, as much of what a class can declare wrongly is of a wrong type.
    """
