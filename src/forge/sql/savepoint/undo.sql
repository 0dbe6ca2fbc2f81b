-- Undo what was done since savepoint/set; the caller's transaction continues.
rollback to savepoint forge_many;
