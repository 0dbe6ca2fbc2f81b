-- Undo what was done since savepoint/set; the caller's transaction goes on.
rollback to savepoint forge_many;
