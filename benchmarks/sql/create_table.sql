-- The reference table: 21 columns, as a job queue that keeps its rows would have them.
-- Autovacuum is off so that no run meets it by chance; every run starts from a fresh table.
CREATE TABLE limit_jobs (
    id uuid PRIMARY KEY,
    job_type varchar(255) NOT NULL,
    input jsonb NOT NULL DEFAULT '{}',
    output jsonb,
    status varchar(32) NOT NULL DEFAULT 'pending',
    priority integer NOT NULL DEFAULT 50,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 3,
    last_error text,
    progress_percent integer DEFAULT 0,
    progress_message text,
    worker_capability varchar(255),
    worker_id uuid,
    idempotency_key varchar(255),
    scheduled_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    claimed_at timestamptz,
    started_at timestamptz,
    completed_at timestamptz,
    failed_at timestamptz,
    last_heartbeat timestamptz
) WITH (autovacuum_enabled = false);
