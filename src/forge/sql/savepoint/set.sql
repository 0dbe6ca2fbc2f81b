-- Begin a part that can be undone without the rest of the caller's transaction.
savepoint forge_many;
