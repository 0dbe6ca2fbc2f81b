-- Delete all messages: PostgreSQL is the transport again.
delete from forge_outbox;
