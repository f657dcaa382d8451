"""Authorizer that allows everybody certain paths, such as health checks (k8s.io/apiserver `authorization/path`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.authorization.attributes import Attributes
from steersman.authorization.interface import Decision, Verdict

_ALLOWED: Final = Verdict(Decision.ALLOW)
_NO_OPINION: Final = Verdict(Decision.NO_OPINION)


class AlwaysAllowPathsAuthorizer:
    """Allows exactly these paths, with any verb; no opinion about resources and other paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)

    def authorize(self, attributes: Attributes) -> Verdict:
        """Allow requests to the configured paths, whatever the verb; return no opinion about others."""
        return _ALLOWED if attributes.path is not None and attributes.path in self._paths else _NO_OPINION
