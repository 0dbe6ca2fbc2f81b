-- The shortest query: whether the server answers.
select 1 as answer;
