"""The fault bench: real servers, processes and signals, judged from outside the engine."""
