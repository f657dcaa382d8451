"""Names of groups, versions, kinds and resources; names and uids that the server generates."""
