"""AlwaysAdmit: refuses nothing, as if it were not there."""

from __future__ import annotations

from steersman.admission.interface import Plugin


class AlwaysAdmit(Plugin):
    """Handles no operation: there is nothing to ask it."""

    name = "AlwaysAdmit"
