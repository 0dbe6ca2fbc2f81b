-- Nothing but an answer.
select 1 as answer;
