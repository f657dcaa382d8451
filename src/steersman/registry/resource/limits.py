"""Limits of counts and lengths in the objects of resource.k8s.io (k8s.io/api `resource/v1`)."""

from __future__ import annotations

from typing import Final

MAX_REQUESTS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_CONFIGS: Final = 32
MAX_SELECTORS: Final = 32
MAX_ALTERNATIVES: Final = 8
MAX_EXPRESSION: Final = 10 * 1024
"""Bytes of a CEL expression."""
MAX_PARAMETERS: Final = 10 * 1024
"""Bytes of a driver's own configuration."""
