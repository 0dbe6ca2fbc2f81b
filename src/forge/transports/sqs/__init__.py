"""SQS: a message names a job, and a worker that receives it claims that job by its id."""
