"""Acting on a running system: pauses, and workers."""
