-- How many objects of each kind the database has, as a text: a test that created or altered tables,
-- functions or settings changes it.
select concat_ws(' ',
    (select count(*) from pg_class where oid >= 16384),
    (select count(*) from pg_attribute where attrelid >= 16384),
    (select count(*) from pg_constraint where oid >= 16384),
    (select count(*) from pg_trigger where oid >= 16384),
    (select count(*) from pg_policy),
    (select count(*) from pg_proc where oid >= 16384),
    (select count(*) from pg_type where oid >= 16384),
    (select count(*) from pg_namespace where oid >= 16384),
    (select count(*) from pg_extension),
    (select count(*) from pg_event_trigger),
    (select count(*) from pg_db_role_setting
     where setdatabase = (select oid from pg_database where datname = current_database()))) as objects;
