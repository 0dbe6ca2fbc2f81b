-- Whether this session sees the rows of every tenant; an error where its caller is not accepted.
select forge_is_operator() as is_operator;
