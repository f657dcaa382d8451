"""The parts of a control plane by subject. The annotated attributes of a part are its dependencies and its results."""
