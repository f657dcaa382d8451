"""Everything that is fuzzed."""

from typing import Final

from tools.fuzz.target import Target

from . import configurations, documents, etcd, expressions, patches, plugins, selectors, shell, tokens, wire

TARGETS: Final[tuple[Target, ...]] = (
    *wire.TARGETS,
    *documents.TARGETS,
    *expressions.TARGETS,
    *selectors.TARGETS,
    *patches.TARGETS,
    *tokens.TARGETS,
    *configurations.TARGETS,
    *plugins.TARGETS,
    *etcd.TARGETS,
    *shell.TARGETS,
)
