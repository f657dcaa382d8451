"""What nodes have and hold, kept up with what informers tell and with what was decided."""
