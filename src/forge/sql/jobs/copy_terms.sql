-- What affects COPY into forge_jobs on this connection: whether row security applies, which makes
-- PostgreSQL reject COPY, and how text must be encoded.
select row_security_active('forge_jobs') as is_refused, current_setting('client_encoding') as encoding;
