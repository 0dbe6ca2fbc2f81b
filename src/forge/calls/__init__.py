"""Mutations and actions: functions that are called, from Python or over HTTP."""
