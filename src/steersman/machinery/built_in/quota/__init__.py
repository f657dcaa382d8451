"""What objects use of quotas: asked by admission, which charges them, and by the controller, which adds it up."""
