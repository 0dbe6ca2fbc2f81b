-- From now on this session acts for whom it did when it was opened, which is nobody as a rule.
reset forge.tenant_id;
