"""Shared code: types, validation, labels, threads, memory, progress. Every package may import it."""
