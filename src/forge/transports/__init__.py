"""How workers learn that there is work: by notifications of PostgreSQL, or by messages of SQS."""
