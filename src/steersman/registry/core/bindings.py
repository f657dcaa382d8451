"""Bindings: posted by a scheduler and never stored; see `pods/binding.py`."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import Binding
from steersman.kinds.built_in import built_in
from steersman.registry.core.pods.binding import create_binding
from steersman.rest.resource import Resource
from steersman.rest.strategy import ANY_NAME

BINDINGS: Final = Resource(
    kind=built_in(Binding),
    plural="bindings",
    verbs=("create",),
    name_validator=ANY_NAME,
    answerer=create_binding,
)
