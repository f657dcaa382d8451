"""Evaluator of jq expressions in bounded time and memory."""
