"""Finalizers that keep an object while it is in use (pkg/controller/util protectionutil)."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from steersman.api.core.v1 import PersistentVolume, PersistentVolumeClaim
from steersman.api.storage.v1 import VolumeAttributesClass

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass)


def is_deletion_candidate(obj: T, finalizer: str) -> bool:
    """Return True if an object is being deleted and has the finalizer."""
    return bool(obj.metadata.deletion_timestamp) and finalizer in obj.metadata.finalizers


def needs_finalizer(obj: T, finalizer: str) -> bool:
    """Return True if an object is not being deleted and lacks the finalizer."""
    return not obj.metadata.deletion_timestamp and finalizer not in obj.metadata.finalizers


def needs_processing(obj: T, finalizer: str) -> bool:
    """Return True if the finalizer may have to be added or removed."""
    return is_deletion_candidate(obj, finalizer) or needs_finalizer(obj, finalizer)


def with_finalizer(obj: T, finalizer: str) -> T:
    """Return a copy of an object with the finalizer."""
    return _with_finalizers(obj, [*obj.metadata.finalizers, finalizer])


def without_finalizer(obj: T, finalizer: str) -> T:
    """Return a copy of an object without the finalizer."""
    return _with_finalizers(obj, [each for each in obj.metadata.finalizers if each != finalizer])


def _with_finalizers(obj: T, finalizers: list[str]) -> T:
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, finalizers=finalizers))
