"""Moving all stored objects between a SQLite file and an etcd cluster. No server may use either during that."""
