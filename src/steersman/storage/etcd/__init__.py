"""The storage contract on etcd (etcd.io, API of 3.4.31, 3.5.13 and later)."""

from steersman.storage.etcd.store import EtcdStorage

__all__ = ["EtcdStorage"]
