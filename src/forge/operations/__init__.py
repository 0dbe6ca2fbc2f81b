"""Acting on a running system: pauses, workers, findings."""
