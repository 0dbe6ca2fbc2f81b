"""Acting on a running system: pauses, workers, overview, findings."""
