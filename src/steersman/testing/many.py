"""Several servers or clusters in this process, by name, with one kubeconfig for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from steersman.machinery.private_files import write_whole
from steersman.server.kubeconfigs import Context, kubeconfig
from steersman.storage.memory import Snapshot
from steersman.testing.environment import Environment
from steersman.testing.threaded_environment import ThreadedEnvironment
from steersman.testing.users import ADMIN, User


class Accessible(Protocol):
    """An environment that clients in other processes reach."""

    def context(self, user: str | User = ADMIN.name) -> Context:
        """Return what a user's kubeconfig says. Raises KeyError, RuntimeError."""
        ...


E = TypeVar("E", bound=Accessible)


class Named(Mapping[str, E], Generic[E]):
    """Running environments by name, in the order of their start; the first one is the current context."""

    def __init__(self, environments: Mapping[str, E]) -> None:
        self._environments = dict(environments)

    def __getitem__(self, name: str) -> E:
        return self._environments[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environments)

    def __len__(self) -> int:
        return len(self._environments)

    def write_kubeconfig(self, path: Path | str, user: str | User = ADMIN.name) -> Path:
        """Write a kubeconfig with a context for each environment, named as it is, and return its path.

        Only its owner can read it. Raises KeyError for an unknown user, RuntimeError if an environment does not listen.
        """
        found = Path(path)
        write_whole(found, kubeconfig({name: each.context(user) for name, each in self.items()}))
        return found


class Clusters(Named[Environment]):
    """Environments on the event loop of the test."""

    def snapshot(self) -> dict[str, Snapshot]:
        """Return a snapshot of the objects of each environment, for `restore`."""
        return {name: each.snapshot() for name, each in self.items()}

    async def restore(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Restore the objects of each snapshot (`Environment.restore`)."""
        for name, each in snapshots.items():
            await self[name].restore(each)


class ThreadedClusters(Named[ThreadedEnvironment]):
    """Environments that block, each in a thread of its own."""

    def snapshot(self) -> dict[str, Snapshot]:
        """Return a snapshot of the objects of each environment, for `restore`."""
        return {name: each.snapshot() for name, each in self.items()}

    def restore(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Restore the objects of each snapshot (`Environment.restore`)."""
        for name, each in snapshots.items():
            self[name].restore(each)


@asynccontextmanager
async def clusters(*names: str, **arguments: Any) -> AsyncIterator[Clusters]:
    """Yield a running `Environment` for each name, made with these arguments.

    Raises ValueError for a name that is given twice, and what `Environment.start` raises.
    """
    _check_names(names)
    async with AsyncExitStack() as running:
        yield Clusters({name: await running.enter_async_context(Environment(**arguments)) for name in names})


@contextmanager
def threaded_clusters(*names: str, **arguments: Any) -> Iterator[ThreadedClusters]:
    """Yield a running `ThreadedEnvironment` for each name, made with these arguments; raises what `clusters` raises."""
    _check_names(names)
    with ExitStack() as running:
        yield ThreadedClusters({name: running.enter_context(ThreadedEnvironment(**arguments)) for name in names})


def _check_names(names: tuple[str, ...]) -> None:
    if not names or len(set(names)) < len(names):
        raise ValueError(f"clusters need a name each: {names}")
