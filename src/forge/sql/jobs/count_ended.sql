-- How many jobs failed or were cancelled, by status. $1 how many of each to read.
select wanted.status,
       (select count(*) from (
            select from forge_jobs
            where status in ('failed', 'dead_letter', 'cancelled')
              and status between wanted.status and wanted.status
            order by status
            limit $1::bigint) as these) as count
from unnest(array['failed', 'dead_letter', 'cancelled']) as wanted (status);
