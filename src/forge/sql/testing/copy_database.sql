-- The command that creates a database as a copy. $1 its name, $2 the template's.
-- Copying files takes half as long as writing them to the WAL, and nothing uses the template.
select format('create database %I template %I', $1::text, $2::text)
       || case when current_setting('server_version_num')::integer >= 150000
               then ' strategy file_copy' else '' end as command;
