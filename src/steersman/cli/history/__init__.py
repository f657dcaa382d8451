"""`steersman history`, `diff` and `fork`: what changed, when and by whom."""
