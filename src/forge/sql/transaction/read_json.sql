-- Shows whether a connection decodes JSON: one that returns it as text returns the quotes, too.
select '"x"'::jsonb as value;
