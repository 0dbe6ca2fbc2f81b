-- A hash of the jobs on a page and of their versions: it differs when a job came, changed or went. The page
-- is another statement, with the same parameters. `stopped_early` says whether it reached its limit of rows
-- or time.
select md5(string_agg(id || ' ' || version, ',' order by id desc) filter (where matches)) as fingerprint,
       coalesce(bool_or(is_stop), false) as stopped_early
from (:inner) as page;
