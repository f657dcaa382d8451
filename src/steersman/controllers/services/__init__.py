"""The controllers of Services: where their pods are, and addresses from outside."""
