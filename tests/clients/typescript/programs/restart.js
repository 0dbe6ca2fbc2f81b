// Follow a job while its server restarts: by a tracker with a bearer token, and by one without.
import { createJobTracker, ForgeClient } from '@forge-jobs/client';

const [url, token, gate] = process.argv.slice(2);
const say = (...words) => console.log(words.join(' '));

const job = createJobTracker('export_users', { client: new ForgeClient({ url, token }) });
job.subscribe((value) => value && say('job', value.status, value.progress_percent));
job.connection.subscribe((state) => say('connection', state));
const jobId = await job.start({ format: 'csv', gate });

const { watch_token } = await new ForgeClient({ url, token }).watchToken(jobId);
const watcher = createJobTracker('export_users', { client: new ForgeClient({ url }) });
watcher.subscribe((value) => value && say('watcher', value.status, value.progress_percent));
watcher.attach(jobId, watch_token);

say('done', JSON.stringify(await Promise.all([job.done(), watcher.done()])));
