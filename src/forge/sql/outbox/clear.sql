-- Forget what was to be sent: PostgreSQL tells the workers itself again.
delete from forge_outbox;
