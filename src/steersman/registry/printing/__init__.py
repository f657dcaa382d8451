"""Values of upstream's internal types in the form in which messages print them."""
