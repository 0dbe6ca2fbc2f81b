-- Keep what was done since savepoint/set; the caller commits it.
release savepoint forge_many;
