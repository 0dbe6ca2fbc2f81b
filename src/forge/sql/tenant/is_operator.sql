-- Whether this session reads the rows of every tenant; raises an error where its caller is not
-- accepted.
select forge_is_operator() as is_operator;
