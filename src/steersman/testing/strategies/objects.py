"""Strategies for whole objects, valid for a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, Verbosity, given, reject, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.errors import Unsatisfiable as NothingFound
from hypothesis.strategies import DrawFn, SearchStrategy

from .built_in import built_in_source
from .built_in_facts import TIES
from .constraints import Constraints
from .errors import Unsatisfiable
from .feasibility import below
from .judges import ChangeJudge, CustomJudge, Judge
from .places import constraints_at
from .repair import Counts, Repair
from .sources import CustomSource, custom_source
from .texts import label_keys, label_values, names
from .values import Values

Body = dict[str, Any]

_PATIENCE: Final = 6
"""Objects of which one has to be valid."""
_ATTEMPTS: Final = 40
"""Attempts of which one has to make a value."""
_NEVER_DRAWN: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


class Objects:
    """Draws objects of one kind. `counts` tells how many needed a repair."""

    def __init__(
        self,
        source: CustomSource,
        judge: Judge,
        namespace: str,
        *,
        status: bool = False,
        tie: Callable[[Body], None] | None = None,
    ) -> None:
        """`tie` changes fields of a drawn object that depend on each other.

        Raises Unsatisfiable if a required field has no value within bounds.
        """
        self._tie = tie
        self.source: Final = source
        self.judge: Final = judge
        self._namespace = namespace if source.namespaced else ""
        self._root = Constraints([source.structural.root])
        self._values = Values()
        self._repair = Repair(self._values, self._root, judge)
        self._skipped = _NEVER_DRAWN - ({"status"} if status else set())
        self._metadata = _metadata()
        for name in {*self._root.required, "spec"} - self._skipped:
            constraints = constraints_at(self._root, (name,))
            if constraints is not None and (problem := self._problem(constraints)):
                raise Unsatisfiable(f"{source.kind}: {below(name, problem)}")
        self.counts: Final[Counts] = self._repair.counts

    def draw(self, draw: DrawFn) -> Body:
        """Draw an object."""
        obj: Body = {"apiVersion": self.source.api_version, "kind": self.source.kind, "metadata": draw(self._metadata)}
        if self._namespace:
            obj["metadata"]["namespace"] = self._namespace
        for name in self._root.node.properties:
            if name in self._skipped or (name not in self._root.required and name != "spec" and not draw(_NOT_ALWAYS)):
                continue
            constraints = constraints_at(self._root, (name,))
            if constraints is not None and (name in self._root.required or not self._problem(constraints)):
                obj[name] = self._values.shape(constraints, 1).draw(draw)
        if self._tie is not None:
            self._tie(obj)
        mended = self._repair.mended(draw, obj)
        if mended is None:
            reject()
        return mended

    def changed(self, draw: DrawFn, new: Body, old: Body) -> Body | None:
        """Return `new`, or what is near to it, such that it may replace `old`; None if nothing is found."""
        if not isinstance(self.judge, CustomJudge):
            return new
        return Repair(self._values, self._root, ChangeJudge(self.judge, old), old).mended(draw, new)

    @property
    def strategy(self) -> SearchStrategy[Body]:
        """The strategy that draws the objects."""
        return st.composite(self.draw)()

    def check_that_some_are_valid(self) -> None:
        """Draw until an object is valid. Raises Unsatisfiable if none is, with the error of the last one."""
        self._repair.patience = _PATIENCE
        is_found = _makes_some(self.strategy)
        self._repair.patience = None
        if not is_found:
            last = self._repair.last_error
            reason = f"no object is valid; the last one: {last}" if last else self._undrawable()
            raise Unsatisfiable(f"{self.source.kind}: {reason}")

    def _undrawable(self) -> str:
        """Return the innermost required field for which no value is found."""
        steps: list[str] = []
        constraints: Constraints | None = self._root
        names_below = [each for each in self._root.node.properties if each not in self._skipped]
        while constraints is not None:
            for name in names_below:
                member = constraints.member(name)
                if member is not None and not self._has_values(member, len(steps) + 1):
                    steps.append(name)
                    constraints, names_below = member, list(member.required)
                    break
            else:
                break
        return f"{'.'.join(steps)}: no value is found within bounds" if steps else "no object is found within bounds"

    def _has_values(self, constraints: Constraints, depth: int) -> bool:
        return not self._problem(constraints) and _makes_some(self._values.shape(constraints, depth).nested)

    def _problem(self, constraints: Constraints) -> str:
        return self._values.feasibility.problem(constraints)


def _makes_some(strategy: SearchStrategy[Any]) -> bool:
    """Return True if a strategy makes a value soon."""
    attempts, found = 0, []

    @st.composite
    def limited(draw: DrawFn) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts > _ATTEMPTS:
            raise Unsatisfiable("too many attempts")
        return draw(strategy)

    @settings(
        max_examples=1,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(limited())
    def take(value: Any) -> None:
        found.append(value)

    with suppress(NothingFound, Unsatisfiable, Flaky):  # flaky, as the last attempt draws nothing
        take()
    return bool(found)


_NOT_ALWAYS: Final = st.booleans()


@st.composite
def _metadata(draw: DrawFn) -> Body:
    found: Body = {"name": draw(names())}
    labels = draw(st.dictionaries(label_keys(), label_values(), max_size=2))
    if labels:
        found["labels"] = labels
    return found


def custom_resources(
    definition: Mapping[str, Any] | str | Path,
    kind: str = "",
    *,
    version: str = "",
    namespace: str = "default",
    status: bool = False,
) -> SearchStrategy[Body]:
    """Return a strategy for objects of a CustomResourceDefinition, which a server accepts.

    `definition` is the definition, or a file or a folder with it; of several, `kind` chooses. `version` is by default
    the storage version. Raises InvalidDefinition, UnknownKind, Unsatisfiable, OSError and ValueError.
    """
    return drawer(definition, kind, version, namespace, status=status).strategy


def drawer(
    definition: Mapping[str, Any] | str | Path,
    kind: str = "",
    version: str = "",
    namespace: str = "default",
    *,
    status: bool = False,
) -> Objects:
    """Return what draws objects of a definition. Raises what `custom_resources` raises."""
    source = custom_source(definition, kind, version)
    found = Objects(source, CustomJudge(source.structural, source.declared), namespace, status=status)
    found.check_that_some_are_valid()
    return found


def built_in(kind: str, api_version: str = "", *, namespace: str = "default") -> SearchStrategy[Body]:
    """Return a strategy for objects of a built-in kind, such as `Deployment`, which a server accepts.

    `api_version` is by default that of the stored version. Raises UnknownKind.
    """
    return built_in_drawer(kind, api_version, namespace).strategy


def built_in_drawer(kind: str, api_version: str = "", namespace: str = "default") -> Objects:
    """Return what draws objects of a built-in kind. Raises UnknownKind."""
    source, judge = built_in_source(kind, api_version)
    return Objects(source, judge, namespace, tie=TIES.get(source.kind))
