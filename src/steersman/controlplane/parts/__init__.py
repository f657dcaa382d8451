"""The parts of a control plane, by what they are about: needs are the fields of each, see `work.parts`."""
