-- Whether row security holds for this connection, so that COPY into forge_jobs is refused.
select row_security_active('forge_jobs') as active;
