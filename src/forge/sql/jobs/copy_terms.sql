-- What COPY into forge_jobs meets on this connection: whether row security holds, so that it is
-- refused, and how text has to be written.
select row_security_active('forge_jobs') as is_refused, current_setting('client_encoding') as encoding;
