"""What objects use of quotas: for admission, which charges them, and for the controller, which adds up what there is."""
