"""Values of upstream's internal types, as messages print them."""
