import { beforeEach, expect, test, vi } from 'vitest';
import { attached, connectTo, fakeWorld, happen, pass, SOON } from './support/follow.js';
import { type HttpRequest, problem } from './support/server.js';

const world = fakeWorld();
const POLL = 2500;

beforeEach(() => {
  world.server.addJob('a');
  world.server.addJob('b');
  world.server.socketMode = 'refused';
});

function requests(verb: string): HttpRequest[] {
  return world.server.requests.filter(({ path }) => path.includes(`/${verb}`));
}

test('without sockets, one job is followed by an event stream', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.change('a', { progress_percent: 40 });
  await pass();

  expect(tracker.get()?.progress_percent).toBe(40);
  expect(tracker.states.at(-1)).toBe('live');
  expect(requests('events')[0]?.headers.Authorization).toBe('Bearer good');
  const polls = requests('live').length;
  await pass(20_000);
  expect(requests('live')).toHaveLength(polls);
});

test('a watch token gives access to streams and polls', async () => {
  const tracker = attached(connectTo(world.server, {}), 'a', 'watch a');

  await pass();

  expect(tracker.states.at(-1)).toBe('live');
  expect(world.server.requests.map(({ path }) => path)).toEqual([
    '/_api/jobs/a/events?watch_token=watch%20a',
    '/_api/jobs/a/live?watch_token=watch%20a',
  ]);
  expect(requests('live')[0]?.headers.Authorization).toBeUndefined();
});

test('when a proxy holds the events back, the job is polled', async () => {
  world.server.streamMode = 'buffered';
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.change('a', { progress_percent: 40 });
  await pass(POLL);

  expect(tracker.get()?.progress_percent).toBe(40);
  expect(tracker.states).toEqual(['idle', 'connecting', 'polling']);
});

test('a stream that stays silent is given up, and tried again after a minute', async () => {
  world.server.streamMode = 'buffered';
  attached(world.connection, 'a');

  await pass(34_000);
  expect(world.server.streams.size).toBe(1);
  await pass(2000);
  expect(world.server.streams.size).toBe(0);
  world.server.streamMode = 'open';
  await pass(50_000);
  expect(requests('events')).toHaveLength(1);
  await pass(15_000);

  expect(requests('events')).toHaveLength(2);
  expect(world.server.streams.size).toBe(1);
});

test('a stream that is refused is replaced by polls', async () => {
  world.server.streamMode = 'refused';
  const tracker = attached(world.connection, 'a');
  await pass();
  world.server.finish('a', { output: 7 });

  await pass(POLL);

  expect(requests('events')).toHaveLength(1);
  expect(tracker.get()).toMatchObject({ status: 'completed', output: 7 });
});

test('a stream that ends is opened again', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.disconnect();
  world.server.change('a', { progress_percent: 40 });
  await pass(POLL + SOON);

  expect(requests('events')).toHaveLength(2);
  expect(tracker.get()?.progress_percent).toBe(40);
  expect(tracker.states.at(-1)).toBe('live');
});

test('a stream that ends and cannot be opened again is replaced by polls', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.streamMode = 'refused';
  world.server.disconnect();
  world.server.change('a', { progress_percent: 40 });
  await pass(2 * POLL);

  expect(tracker.get()?.progress_percent).toBe(40);
});

test('the next job is streamed, too', async () => {
  const a = attached(world.connection, 'a');
  await pass();

  a.cleanup();
  await pass(1000);
  const b = attached(world.connection, 'b');
  await pass(POLL);

  expect([...world.server.streams.values()]).toEqual(['b']);
  expect(b.states.at(-1)).toBe('live');
});

test('a problem in a stream ends the job', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();

  for (const stream of world.server.streams.keys()) {
    world.server.sendEvent(stream, 'problem', { code: 'not_found', message: 'deleted' });
  }
  await pass();

  expect(tracker.error.get()).toMatchObject({ code: 'not_found', message: 'deleted' });
  expect(world.server.streams.size).toBe(0);
});

test('the end of the following ends the stream and the polls', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();

  tracker.cleanup();
  await pass();
  expect(world.server.streams.size).toBe(0);

  await pass(5000);
  expect(vi.getTimerCount()).toBe(0);
});

test('several jobs are polled, four at a time', async () => {
  const ids = Array.from({ length: 50 }, (_, index) => `job ${index}`);
  for (const id of ids) world.server.addJob(id);
  let running = 0;
  let most = 0;
  world.server.answer = async () => {
    running++;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running--;
    return undefined;
  };

  const trackers = ids.map((id) => attached(world.connection, id));
  await pass(POLL);

  expect(trackers.map((tracker) => tracker.get()?.id)).toEqual(ids);
  expect(requests('events')).toEqual([]);
  expect(most).toBe(4);
});

test('a job that is followed later is polled at once', async () => {
  attached(world.connection, 'a');
  await pass();

  const b = attached(world.connection, 'b');
  await pass();

  expect(b.get()?.id).toBe('b');
  expect(world.server.streams.size).toBe(0);
  expect(b.states.at(-1)).toBe('polling');
});

test('polls ask about every job again and again', async () => {
  const a = attached(world.connection, 'a');
  const b = attached(world.connection, 'b');
  await pass();

  world.server.change('a', { progress_percent: 1 });
  world.server.change('b', { progress_percent: 2 });
  await pass(POLL + SOON);

  expect([a.get()?.progress_percent, b.get()?.progress_percent]).toEqual([1, 2]);
  expect(a.states).toEqual(['idle', 'connecting', 'polling']);
});

test('a socket that works again takes over', async () => {
  const tracker = attached(world.connection, 'a');
  await pass(30_000);
  const attempts = world.server.sockets.length;

  world.server.socketMode = 'open';
  await pass(30_000);

  expect(attempts).toBeGreaterThan(2);
  expect(world.server.followed).toEqual(['a']);
  expect(world.server.streams.size).toBe(0);
  expect(tracker.states.at(-1)).toBe('live');
  const polls = requests('live').length;
  await pass(30_000);
  expect(requests('live')).toHaveLength(polls);
});

test('a socket that opens and stays silent is replaced after 10 seconds', async () => {
  world.server.socketMode = 'silent';
  const tracker = attached(world.connection, 'a');

  await pass(13_000);

  expect(tracker.get()?.id).toBe('a');
  expect(tracker.states.at(-1)).toBe('live');
});

test('a stream ends when a socket takes over', async () => {
  attached(world.connection, 'a');
  await pass();

  world.server.socketMode = 'open';
  happen('online');
  await pass();

  expect(world.server.followed).toEqual(['a']);
  expect(world.server.streams.size).toBe(0);
});

test('a short loss of a working socket starts no fallback', async () => {
  world.server.socketMode = 'open';
  attached(world.connection, 'a');
  await pass();

  world.server.disconnect(1012);
  await pass(5000);

  expect(world.server.requests).toEqual([]);
});

test('an unreachable server is reported as offline, until it answers', async () => {
  attached(world.connection, 'b');
  const tracker = attached(world.connection, 'a');
  world.server.isUp = false;
  await pass(20_000);
  expect(tracker.states).toEqual(['idle', 'connecting', 'offline']);

  world.server.isUp = true;
  world.server.socketMode = 'open';
  await pass(30_000);

  expect(tracker.states.at(-1)).toBe('live');
  expect(tracker.states.slice(3)).not.toContain('connecting');
});

test('polls stop at the first that fails', async () => {
  const ids = Array.from({ length: 50 }, (_, index) => `job ${index}`);
  for (const id of ids) attached(world.connection, id);
  world.server.isUp = false;

  await pass();

  expect(requests('live')).toHaveLength(4);
});

test('an answer of the server ends the wait for the next socket', async () => {
  world.server.isUp = false;
  attached(world.connection, 'a');
  attached(world.connection, 'b');
  await pass(120_000);
  const polled = world.server.requests.length;

  world.server.isUp = true;
  world.server.socketMode = 'open';
  while (world.server.requests.length === polled) await pass();
  await pass();

  expect(world.server.followed).toEqual(['a', 'b']);
});

test('the server says when to poll again', async () => {
  world.server.answer = () => problem(503, 'unavailable', {}, { 'Retry-After': '20' });
  attached(world.connection, 'a');
  attached(world.connection, 'b');
  await pass();
  const polled = requests('live').length;

  await pass(19_000);
  expect(requests('live')).toHaveLength(polled);
  await pass(2000);
  expect(requests('live').length).toBeGreaterThan(polled);
});

test('a job that cannot be read does not keep others from being polled', async () => {
  world.server.answer = ({ path }) => (path.includes('/a/') ? problem(500, 'internal') : undefined);
  const a = attached(world.connection, 'a');
  const b = attached(world.connection, 'b');

  await pass();

  expect(b.get()?.id).toBe('b');
  expect(b.states.at(-1)).toBe('polling');
  expect(a.error.get()).toBeNull();
});

test.each([
  [403, 'forbidden'],
  [404, 'not_found'],
])('a poll that is answered with %i ends the job', async (status, code) => {
  world.server.answer = ({ path }) => (path.includes('/a/') ? problem(status, code) : undefined);
  const a = attached(world.connection, 'a');
  const b = attached(world.connection, 'b');

  await pass();

  expect(a.error.get()).toMatchObject({ code, status });
  expect(b.error.get()).toBeNull();
});

test('a watch token that expires is replaced while polling', async () => {
  const connection = connectTo(world.server, {});
  const token = vi.fn().mockResolvedValueOnce('watch a').mockResolvedValueOnce('watch a again');
  const a = attached(connection, 'a', token);
  attached(connection, 'b', 'watch b');
  await pass();

  world.server.watchTokens.delete('watch a');
  world.server.watchTokens.set('watch a again', 'a');
  world.server.change('a', { progress_percent: 60 });
  await pass(3 * POLL);

  expect(token).toHaveBeenCalledTimes(2);
  expect(a.error.get()).toBeNull();
  expect(a.get()?.progress_percent).toBe(60);
});

test('a bearer token that expires is replaced while polling', async () => {
  const token = vi.fn(async () => [...world.server.tokens].at(-1) ?? '');
  const connection = connectTo(world.server, { token });
  const a = attached(connection, 'a');
  attached(connection, 'b');
  await pass();

  world.server.tokens.clear();
  world.server.tokens.add('better');
  world.server.change('a', { progress_percent: 60 });
  await pass(POLL + SOON);

  expect(a.get()?.progress_percent).toBe(60);
  expect(a.error.get()).toBeNull();
});

test('a bearer token that is rejected ends the jobs while polling', async () => {
  const a = attached(world.connection, 'a');
  attached(world.connection, 'b');
  await pass();

  world.server.tokens.clear();
  world.server.tokens.add('better');
  await pass(POLL + SOON);

  expect(a.error.get()).toMatchObject({ code: 'unauthenticated', status: 401 });
});

test('a poll that is answered late does not move a job back', async () => {
  attached(world.connection, 'b');
  const tracker = attached(world.connection, 'a');
  await pass();
  world.server.change('a', { progress_percent: 40 });
  const older = structuredClone(world.server.jobs.get('a'));
  world.server.answer = async ({ path }) => {
    if (!path.includes('/a/live')) return undefined;
    await new Promise((resolve) => setTimeout(resolve, 5000));
    return new Response(JSON.stringify(older));
  };
  await pass(POLL);

  world.server.socketMode = 'open';
  world.server.change('a', { progress_percent: 80 });
  happen('online');
  await pass(10_000);

  expect(tracker.values).toEqual([null, ['pending', null], ['pending', 80]]);
  expect(tracker.states.at(-1)).toBe('live');
});

test('when the page is shown again, jobs are polled at once', async () => {
  const tracker = attached(world.connection, 'a');
  attached(world.connection, 'b');
  await pass();
  world.server.change('a', { progress_percent: 40 });

  happen('visibilitychange');
  await pass();

  expect(tracker.get()?.progress_percent).toBe(40);
});

test('when the page is shown again during a poll, another one follows', async () => {
  const tracker = attached(world.connection, 'a');
  attached(world.connection, 'b');
  await pass();
  const stale = structuredClone(world.server.jobs.get('a'));
  world.server.answer = async ({ path }) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return path.includes('/a/') ? new Response(JSON.stringify(stale)) : undefined;
  };
  happen('pageshow');
  await pass(20);

  world.server.change('a', { progress_percent: 40 });
  happen('pageshow');
  world.server.answer = () => undefined;
  await pass(200);

  expect(tracker.get()?.progress_percent).toBe(40);
});

test('without the constructor of sockets, jobs are followed by the fallback', async () => {
  const WebSocket = class {
    constructor() {
      throw new DOMException('blocked', 'SecurityError');
    }
  } as unknown as typeof globalThis.WebSocket;
  const tracker = attached(connectTo(world.server, { token: 'good', WebSocket }), 'a');

  await pass();

  expect(tracker.states.at(-1)).toBe('live');
});
