"""Build hook: writes the descriptions of types and fields that the package ships (tools/type_descriptions.py)."""

from __future__ import annotations

import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DescriptionsHook(BuildHookInterface[Any]):
    """Writes `src/steersman/openapi/data/descriptions` before a wheel, sdist or editable installation is made."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files anew. Raises PackageNotFoundError without the build requirement lightkube-models."""
        sys.path.insert(0, self.root)
        try:
            from tools import type_descriptions
        finally:
            sys.path.remove(self.root)
        type_descriptions.write()
