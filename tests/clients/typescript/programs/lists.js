// Watch a list of jobs: it is reported at once, and again when a job of it changes.
import { ForgeClient } from '@forge-jobs/client';

const [url, token, gate] = process.argv.slice(2);
const client = new ForgeClient({ url, token });
const filter = { type: 'export_users', tag: 'watched' };
const seen = [];

const end = client.watchList(filter, async () => {
  const { items } = await client.list(filter);
  const line = items.map(({ status }) => status).join(' ') || 'empty';
  if (seen.at(-1) !== line) console.log(line);
  seen.push(line);
  if (seen.length === 1) {
    await client.dispatch('export_users', { format: 'csv', gate }, { tags: ['watched'] });
  }
  if (line === 'completed') end();
});
