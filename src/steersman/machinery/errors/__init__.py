"""What a client is told of what is wrong: Statuses, field errors, and values as Go prints them."""
