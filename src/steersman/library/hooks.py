"""Hooks: methods of a declared class that prepare objects, judge them, and hear of what was written."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, overload

from steersman.library.definition_error import DefinitionError

if TYPE_CHECKING:  # declarations import nothing of the server
    from steersman.api.meta.v1 import ObjectMeta
    from steersman.authentication.user import UserInfo
    from steersman.machinery.errors.field import FieldError
    from steersman.machinery.errors.status import StatusError
    from steersman.rest.context import Context

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

_MARK: Final = "__steersman_hook__"
_PREPARE: Final = "prepare"
_VALIDATE: Final = "validate"
_ADMIT: Final = "admit"
_AFTER_WRITE: Final = "after_write"
_STATUS: Final = "/status"
_MARKS: Final = (
    _PREPARE,
    _VALIDATE,
    _ADMIT,
    _AFTER_WRITE,
    _PREPARE + _STATUS,
    _ADMIT + _STATUS,
    _AFTER_WRITE + _STATUS,
)


class Objects(Protocol[C]):
    """The stored objects of a class, as its instances, which are the caller's own.

    ValueError is raised for an object that was stored when the class was another, and is none of its instances.
    """

    async def find(self, name: str, namespace: str = "") -> C | None:
        """The object, None if there is none."""
        ...

    def every(self, namespace: str = "") -> AsyncIterator[C]:
        """Every object of a namespace, or of all; others have the loop in between."""
        ...


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """What a hook is told of the request. `old` is the object before an update or a deletion, None on a creation.

    `metadata` is that of the object that the hook is a method of; `prepare` may change its labels, annotations,
    finalizers and owner references.
    """

    operation: str
    """CREATE, UPDATE or DELETE; for a storage of one's own GET, LIST or WATCH too."""
    metadata: ObjectMeta
    old: T | None
    subresource: str
    """"status" for a write of the status, "" for one of the object."""
    _ctx: Context
    _objects_of: Callable[[type[Any]], Objects[Any]] | None = None

    @property
    def user(self) -> UserInfo:
        """Who asks."""
        return self._ctx.user

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self._ctx.dry_run

    def warn(self, text: str) -> None:
        """Tells the client something about a write that goes through."""
        self._ctx.warn(text)

    def forbid(self, reason: str) -> StatusError:
        """What `admit` raises to refuse the request: 403 with this reason."""
        from steersman.machinery.errors.status import forbidden

        return forbidden(self._ctx.action.group_resource, self.metadata.name, reason)

    def already_exists(self) -> StatusError:
        """What a storage of one's own raises for a new object whose name is taken: 409."""
        from steersman.machinery.errors.status import already_exists

        return already_exists(self._ctx.action.group_resource, self.metadata.name)

    def conflict(self, reason: str) -> StatusError:
        """What it raises for an object that has changed since it was got: 409 with this reason."""
        from steersman.machinery.errors.status import conflict

        return conflict(self._ctx.action.group_resource, self.metadata.name, reason)

    def expired(self) -> StatusError:
        """What it raises for a watch that cannot go on from the version asked for: 410, so that the client lists."""
        from steersman.machinery.errors.status import expired

        return expired("The resourceVersion for the provided watch is too old.")

    def objects(self, model: type[R]) -> Objects[R]:
        """The stored objects of a class, of this or of another resource of the server.

        Raises RuntimeError in `prepare` and `validate`, which must not wait, KeyError for a class that is not served,
        TypeError for one that is not declared.
        """
        if self._objects_of is None:
            raise RuntimeError("prepare and validate must not wait: look at other objects in admit")
        return self._objects_of(model)


Prepare = Callable[[Any, Request[Any]], None]
Validate = Callable[[Any, Request[Any]], "Iterator[FieldError] | None"]
Admit = Callable[[Any, Request[Any]], Awaitable[None]]
AfterWrite = Callable[[Any, Request[Any]], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class HookSet:
    """The hooks of a class for writes of the object or, in `status`, of its status; each kind in the order of their
    declaration."""

    prepare: tuple[Prepare, ...] = ()
    validate: tuple[Validate, ...] = ()
    admit: tuple[Admit, ...] = ()
    after_write: tuple[AfterWrite, ...] = ()
    status: HookSet | None = None

    def of(self, subresource: str) -> HookSet:
        """Those for writes of the object (""), or of its status."""
        return self.status or _NO_HOOKS if subresource else self


_NO_HOOKS: Final = HookSet()


@overload
def prepare(method: F) -> F: ...


@overload
def prepare(*, status: bool) -> Callable[[F], F]: ...


def prepare(method: F | None = None, *, status: bool = False) -> F | Callable[[F], F]:
    """`def fill(self, request: Request) -> None` changes an object that is created or replaced, before it is judged.

    It must not wait, and leaves alone by what the object is known (`metadata.name`, `uid` and the like): the request is
    answered 500 otherwise. `@prepare(status=True)` is called for writes of the status instead, and changes that alone.
    """
    return _marking(_PREPARE, method, status=status)


def validate(method: F) -> F:
    """`def check(self, request: Request) -> Iterator[FieldError]` yields what is wrong with an object, its status too.

    It is called for objects that the schema and its rules find nothing wrong with, and must not wait.
    """
    return _marked(method, _VALIDATE)


@overload
def admit(method: F) -> F: ...


@overload
def admit(*, status: bool) -> Callable[[F], F]: ...


def admit(method: F | None = None, *, status: bool = False) -> F | Callable[[F], F]:
    """`async def allow(self, request: Request) -> None` may refuse an object that is created or replaced, by
    `raise request.forbid("...")`. It may wait, and look at other objects by `request.objects(Class)`.

    It is called before `prepare`, for objects that the schema finds nothing wrong with. `@admit(status=True)` is called
    for writes of the status instead.
    """
    return _marking(_ADMIT, method, status=status)


@overload
def after_write(method: F) -> F: ...


@overload
def after_write(*, status: bool) -> Callable[[F], F]: ...


def after_write(method: F | None = None, *, status: bool = False) -> F | Callable[[F], F]:
    """`async def tell(self, request: Request) -> None` hears of an object that was created, replaced or deleted, before
    the client is answered. What it raises is logged: the write stays. `@after_write(status=True)` hears of writes of
    the status instead."""
    return _marking(_AFTER_WRITE, method, status=status)


def hooks_of(model: type[Any]) -> HookSet:
    """The hooks of a class and of those it inherits from. A method may be several. Raises DefinitionError for one that
    could not be called as it has to be."""
    found: dict[str, dict[str, Callable[..., Any]]] = {mark: {} for mark in _MARKS}
    for base in reversed(model.__mro__):
        for name, method in vars(base).items():
            for mark in getattr(method, _MARK, ()):
                _check(f"{model.__name__}.{name}", mark, method)
                found[mark][name] = method
    methods = {mark: tuple(each.values()) for mark, each in found.items()}
    status = HookSet(
        prepare=methods[_PREPARE + _STATUS],
        admit=methods[_ADMIT + _STATUS],
        after_write=methods[_AFTER_WRITE + _STATUS],
    )
    return HookSet(
        methods[_PREPARE],
        methods[_VALIDATE],
        methods[_ADMIT],
        methods[_AFTER_WRITE],
        None if status == _NO_HOOKS else status,
    )


def own_hooks(model: type[Any], hub: type[Any]) -> list[str]:
    """The names of the hooks that a class has beside those it shares with `hub`."""
    return [
        name
        for base in model.__mro__
        if base not in hub.__mro__
        for name, method in vars(base).items()
        if getattr(method, _MARK, ())
    ]


def _check(where: str, mark: str, method: Callable[..., Any]) -> None:
    """Raises DefinitionError."""
    name = mark.removesuffix(_STATUS)
    is_async = inspect.iscoroutinefunction(method)
    yields = inspect.isgeneratorfunction(method)
    if inspect.isasyncgenfunction(method):
        is_async = yields = True
    if name == _ADMIT and (yields or not is_async):
        raise DefinitionError(f"{where}: what is marked with @admit is `async def`, and refuses by raising")
    if name in (_PREPARE, _VALIDATE) and is_async:
        raise DefinitionError(
            f"{where}: what is marked with @{name} is `def`, as it must not wait; @admit marks what may wait"
        )
    if name in (_PREPARE, _AFTER_WRITE) and yields:
        raise DefinitionError(f"{where}: what is marked with @{name} gives nothing, and so has no `yield`")


def _marking(mark: str, method: F | None, *, status: bool) -> F | Callable[[F], F]:
    if method is None:
        return lambda method: _marked(method, mark + _STATUS if status else mark)
    return _marked(method, mark)


def _marked(method: F, mark: str) -> F:
    setattr(method, _MARK, getattr(method, _MARK, frozenset()) | {mark})
    return method
