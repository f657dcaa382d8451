"""What a user may do: the contract, and one judge in each file."""
