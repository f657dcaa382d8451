"""What a write of `/status` may not change in the metadata."""

from __future__ import annotations

from steersman.api.meta.v1 import ObjectMeta


def reset_metadata_for_status(new: ObjectMeta, old: ObjectMeta) -> None:
    """Undoes every change of metadata but that of managedFields, which tell of the write itself."""
    new.deletion_timestamp = old.deletion_timestamp
    new.generation = old.generation
    new.self_link = old.self_link
    new.labels = old.labels
    new.annotations = old.annotations
    new.finalizers = old.finalizers
    new.owner_references = old.owner_references
