"""What is told from objects of built-in kinds on several floors: a pod's sums, the class of a claim."""
