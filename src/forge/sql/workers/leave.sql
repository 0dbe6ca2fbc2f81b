-- Remove a worker that shuts down.
delete from forge_workers where id = $1 and incarnation = $2 returning id;
