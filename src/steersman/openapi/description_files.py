"""Names of the files of descriptions. The build imports this module, so that it uses only the standard library."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from steersman.work.patterns import late_pattern

FOLDER: Final = Path(__file__).parent / "data" / "descriptions"
_VERSION: Final = late_pattern(r"v\d+((alpha|beta)\d+)?", re.ASCII)


def module_of(schema: str) -> tuple[str, str]:
    """Return the module and the class of a schema, such as ("core_v1", "Pod") of "io.k8s.api.core.v1.Pod"."""
    parts = ["", "", *schema.split(".")]
    is_versioned = _VERSION.fullmatch(parts[-2]) is not None and parts[-3] != ""
    return (f"{parts[-3]}_{parts[-2]}" if is_versioned else parts[-2]), parts[-1]
