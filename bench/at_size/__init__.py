"""What a large cluster's worth of objects and watchers costs a server; see __main__.py."""
