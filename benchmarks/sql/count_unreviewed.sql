select count(*) from forge_dead_letters where status = 'pending_review'
