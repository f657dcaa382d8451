"""Finalizers that keep an object for as long as it is used (pkg/controller/util protectionutil)."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.api.storage.v1 import VolumeAttributesClass

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass)


def may_go(obj: T, finalizer: str) -> bool:
    """Whether an object is to be deleted, and the finalizer keeps it."""
    return bool(obj.metadata.deletion_timestamp) and finalizer in obj.metadata.finalizers


def lacks(obj: T, finalizer: str) -> bool:
    """Whether an object has to get the finalizer."""
    return not obj.metadata.deletion_timestamp and finalizer not in obj.metadata.finalizers


def concerns(obj: T, finalizer: str) -> bool:
    """Whether something may have to be done."""
    return may_go(obj, finalizer) or lacks(obj, finalizer)


def with_finalizer(obj: T, finalizer: str) -> T:
    """An object that is kept."""
    return _with_finalizers(obj, [*obj.metadata.finalizers, finalizer])


def without_finalizer(obj: T, finalizer: str) -> T:
    """An object that is not kept any more."""
    return _with_finalizers(obj, [each for each in obj.metadata.finalizers if each != finalizer])


def _with_finalizers(obj: T, finalizers: list[str]) -> T:
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, finalizers=finalizers))
