"""What things are called: groups, versions, kinds and resources; names and uids that the server makes up."""
