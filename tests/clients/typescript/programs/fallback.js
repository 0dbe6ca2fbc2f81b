// Follow jobs without sockets: one by an event stream, several by polling.
import { createJobTracker, ForgeClient } from '@forge-jobs/client';

const [url, token, gate] = process.argv.slice(2);
const say = (...words) => console.log(words.join(' '));

class Refused {
  constructor() {
    throw new Error('sockets are blocked');
  }
}

async function follow(name, client) {
  const job = createJobTracker('export_users', { client });
  job.subscribe((value) => value && say(name, value.status, value.progress_percent));
  job.connection.subscribe((state) => say(name, state));
  await job.start({ format: name, gate });
  return job;
}

const streamed = await follow('streamed', new ForgeClient({ url, token, WebSocket: Refused }));
const client = new ForgeClient({ url, token, WebSocket: Refused });
const polled = await Promise.all([follow('polled', client), follow('polled', client)]);
const outputs = await Promise.all([streamed, ...polled].map((job) => job.done()));
say('done', JSON.stringify(outputs));
