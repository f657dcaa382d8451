"""Hooks: methods of a declared class that prepare and validate objects, and react to writes."""

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
    """The stored objects of a class as its instances, which the caller owns.

    ValueError is raised for an object that was stored with an earlier form of the class and does not fit it any more.
    """

    async def find(self, name: str, namespace: str = "") -> C | None:
        """Return an object, None if there is none."""
        ...

    def every(self, namespace: str = "") -> AsyncIterator[C]:
        """Yield every object of a namespace ("" for all); other tasks run in between."""
        ...


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """The request for which a hook is called.

    `old` is the object before an update or deletion, None on create. `metadata` is that of the hook's object; `prepare`
    may change its labels, annotations, finalizers and owner references.
    """

    operation: str
    """CREATE, UPDATE or DELETE; for a custom storage also GET, LIST or WATCH."""
    metadata: ObjectMeta
    old: T | None
    subresource: str
    """"status" for a write of the status, "" for one of the object."""
    _ctx: Context
    _objects_of: Callable[[type[Any]], Objects[Any]] | None = None

    @property
    def user(self) -> UserInfo:
        """The authenticated user of the request."""
        return self._ctx.user

    @property
    def dry_run(self) -> bool:
        """True if nothing is to be stored."""
        return self._ctx.dry_run

    def warn(self, text: str) -> None:
        """Add a warning for the client to the answer of a successful write."""
        self._ctx.warn(text)

    def forbid(self, reason: str) -> StatusError:
        """Return the error with which `admit` refuses the request: 403 with this reason."""
        from steersman.machinery.errors.status import forbidden

        return forbidden(self._ctx.action.group_resource, self.metadata.name, reason)

    def already_exists(self) -> StatusError:
        """Return the error of a custom storage for a new object whose name is taken: 409."""
        from steersman.machinery.errors.status import already_exists

        return already_exists(self._ctx.action.group_resource, self.metadata.name)

    def conflict(self, reason: str) -> StatusError:
        """Return the error of a custom storage for an object that has changed since it was read: 409 with this reason."""
        from steersman.machinery.errors.status import conflict

        return conflict(self._ctx.action.group_resource, self.metadata.name, reason)

    def expired(self) -> StatusError:
        """Return the error of a custom storage for a watch that cannot resume from its version: 410, so that the client
        lists.
        """
        from steersman.machinery.errors.status import expired

        return expired("The resourceVersion for the provided watch is too old.")

    def objects(self, model: type[R]) -> Objects[R]:
        """Return access to the stored objects of a class, of this or another resource of the server.

        Raises RuntimeError in `prepare` and `validate`, which must not wait, KeyError for a class that is not served,
        TypeError for a class that is not declared.
        """
        if self._objects_of is None:
            raise RuntimeError("prepare and validate must not wait: read other objects in admit")
        return self._objects_of(model)


Prepare = Callable[[Any, Request[Any]], None]
Validate = Callable[[Any, Request[Any]], "Iterator[FieldError] | None"]
Admit = Callable[[Any, Request[Any]], Awaitable[None]]
AfterWrite = Callable[[Any, Request[Any]], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class HookSet:
    """The hooks of a class by type, in declaration order; `status` has those for writes of the status."""

    prepare: tuple[Prepare, ...] = ()
    validate: tuple[Validate, ...] = ()
    admit: tuple[Admit, ...] = ()
    after_write: tuple[AfterWrite, ...] = ()
    status: HookSet | None = None

    def for_subresource(self, subresource: str) -> HookSet:
        """Return the hooks for writes of the object (""), or of its status."""
        return self.status or _NO_HOOKS if subresource else self


_NO_HOOKS: Final = HookSet()


@overload
def prepare(method: F) -> F: ...


@overload
def prepare(*, status: bool) -> Callable[[F], F]: ...


def prepare(method: F | None = None, *, status: bool = False) -> F | Callable[[F], F]:
    """Mark a method that changes an object before validation: `def fill(self, request: Request) -> None`.

    It is called on create and update. It must not wait, and must not change the object's identity (`metadata.name`,
    `uid` and the like), otherwise the request fails with 500. `@prepare(status=True)` is called for writes of the
    status instead, and changes only the status.
    """
    return _marking(_PREPARE, method, status=status)


def validate(method: F) -> F:
    """Mark a method that yields an object's errors: `def check(self, request: Request) -> Iterator[FieldError]`.

    It is called for objects, also with a new status, that have no schema or rule errors. It must not wait.
    """
    return _marked(method, _VALIDATE)


@overload
def admit(method: F) -> F: ...


@overload
def admit(*, status: bool) -> Callable[[F], F]: ...


def admit(method: F | None = None, *, status: bool = False) -> F | Callable[[F], F]:
    """Mark a method that may refuse a write: `async def allow(self, request: Request) -> None`.

    It is called on create and update, and refuses with `raise request.forbid("...")`. It may wait, and read other
    objects through `request.objects(Class)`. It is called before `prepare`, for objects without schema errors.
    `@admit(status=True)` is called for writes of the status instead.
    """
    return _marking(_ADMIT, method, status=status)


@overload
def after_write(method: F) -> F: ...


@overload
def after_write(*, status: bool) -> Callable[[F], F]: ...


def after_write(method: F | None = None, *, status: bool = False) -> F | Callable[[F], F]:
    """Mark a method that is called after a write: `async def tell(self, request: Request) -> None`.

    It is called for a created, replaced or deleted object, before the client gets the answer. An exception is logged,
    and the write stays. `@after_write(status=True)` is called for writes of the status instead.
    """
    return _marking(_AFTER_WRITE, method, status=status)


def hooks_of(model: type[Any]) -> HookSet:
    """Return the hooks of a class and its bases; a method may be several hooks.

    Raises DefinitionError for a method with an unsuitable form.
    """
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
    """Return the names of the hooks that a class has and `hub` does not share."""
    return [
        name
        for base in model.__mro__
        if base not in hub.__mro__
        for name, method in vars(base).items()
        if getattr(method, _MARK, ())
    ]


def _check(where: str, mark: str, method: Callable[..., Any]) -> None:
    """Raise DefinitionError for a method whose form does not suit its mark."""
    name = mark.removesuffix(_STATUS)
    is_async = inspect.iscoroutinefunction(method)
    yields = inspect.isgeneratorfunction(method)
    if inspect.isasyncgenfunction(method):
        is_async = yields = True
    if name == _ADMIT and (yields or not is_async):
        raise DefinitionError(f"{where}: a method marked with @admit must be `async def`, and refuses by raising")
    if name in (_PREPARE, _VALIDATE) and is_async:
        raise DefinitionError(
            f"{where}: a method marked with @{name} must be `def`, as it must not wait; a hook that waits is marked with @admit"
        )
    if name in (_PREPARE, _AFTER_WRITE) and yields:
        raise DefinitionError(f"{where}: a method marked with @{name} returns nothing, so it must not contain `yield`")


def _marking(mark: str, method: F | None, *, status: bool) -> F | Callable[[F], F]:
    if method is None:
        return lambda method: _marked(method, mark + _STATUS if status else mark)
    return _marked(method, mark)


def _marked(method: F, mark: str) -> F:
    setattr(method, _MARK, getattr(method, _MARK, frozenset()) | {mark})
    return method
