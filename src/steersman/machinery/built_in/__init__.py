"""Facts about objects of built-in kinds that several layers need, such as a pod's resources or a claim's class."""
