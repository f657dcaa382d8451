"""The parts of a control plane, by what they are about; what each needs and offers are its attributes."""
