"""What an operator should know: checks of the database, the rights, the tables and the work."""
