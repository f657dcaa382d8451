"""All that is stored, moved between a SQLite file and an etcd cluster. No server may run on either meanwhile."""
