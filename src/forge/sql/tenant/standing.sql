-- Whether this login must name a caller, and whether callers must be signed.
select forge_is_bound() as is_bound, forge_signs_callers() as is_signed;
