// Call every route that the client knows, and print what comes back as one JSON object.
import { createJobTracker, ForgeClient } from '@forge-jobs/client';

const [url, token] = process.argv.slice(2);
const client = new ForgeClient({ url, token });
const seen = {};

async function failure(promise) {
  try {
    return { value: await promise };
  } catch ({ name, code, status, message, faults }) {
    return { name, code, status, message, faults };
  }
}

async function ending(tracker) {
  return failure(tracker.done());
}

const key = { idempotencyKey: 'order 1', delay: '1h', tags: ['a'] };
const first = await client.dispatch('export_users', { format: 'csv' }, key);
const again = await client.dispatch('export_users', { format: 'csv' }, key);
seen.dispatched = [first.status, again.deduplicated, again.job_id === first.job_id];
const { status, tags, version } = await client.get(first.job_id);
seen.job = [status, tags, version];
const page = await client.list({ status: 'pending', type: 'export_users', limit: 1 });
seen.page = page.items.map(({ id }) => id === first.job_id);

const due = createJobTracker('export_users', { client });
due.attach(first.job_id);
seen.ranNow = (await client.runNow(first.job_id)).job_type;
seen.output = await due.done();

const later = createJobTracker('export_users', { client });
const laterId = await later.start({ format: 'csv' }, { delay: '1h' });
await later.cancel();
seen.cancelled = await ending(later);
seen.conflict = await failure(client.cancel(laterId, 'again'));

const broken = createJobTracker('export_users', { client });
await broken.start({ format: 'broken' });
seen.failed = await ending(broken);
seen.deadLettered = [broken.get().status, broken.get().dead_lettered];

const watchToken = (await client.watchToken(laterId)).watch_token;
const watcher = createJobTracker('export_users', { client: new ForgeClient({ url }) });
watcher.attach(laterId, watchToken);
seen.watched = (await ending(watcher)).code;
seen.forbidden = await failure(watcher.cancel());

seen.mutation = typeof (await client.callMutation('register_user', { email: 'a@b.c' })).job_id;
seen.action = await client.callAction('double', { number: 21 });
seen.invalid = await failure(client.dispatch('export_users', { format: 7 }));
seen.unknownType = (await failure(client.dispatch('no_such_type'))).code;
seen.missing = (await failure(client.get('00000000-0000-0000-0000-000000000000'))).code;
const stranger = createJobTracker('export_users', { client: new ForgeClient({ url, token: 'no' }) });
stranger.attach(laterId);
seen.stranger = await ending(stranger);
const unknown = createJobTracker('export_users', { client });
unknown.attach('00000000-0000-0000-0000-000000000000');
seen.notFound = (await ending(unknown)).code;

console.log(JSON.stringify(seen));
