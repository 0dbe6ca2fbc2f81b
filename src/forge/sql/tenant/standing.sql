-- Whether this login has to name a caller, and whether callers have to be signed.
select forge_is_bound() as is_bound, forge_signs_callers() as is_signed;
