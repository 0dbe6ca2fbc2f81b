"""The fault bench: real servers, processes and signals, checked from outside the engine."""
