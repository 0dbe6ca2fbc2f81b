-- What was done since savepoint/set is now the caller's to commit.
release savepoint forge_many;
