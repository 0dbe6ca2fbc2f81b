import { expect, test, vi } from 'vitest';
import { ForgeError } from '../src/errors.js';
import { createJobTracker } from '../src/tracker.js';
import { attached, connectTo, fakeWorld, pass } from './support/follow.js';

const world = fakeWorld();

/** The milliseconds between the attempts to open a socket. */
function delays(): number[] {
  const times = world.server.sockets.map((socket) => socket.createdAt);
  return times.slice(1).map((time, index) => time - (times[index] ?? 0));
}

test('a socket is not opened before a job is followed', async () => {
  createJobTracker('export_users', { client: world.client });

  await pass(60_000);

  expect(world.server.sockets).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a socket authenticates, subscribes and delivers states', async () => {
  world.server.addJob('a');
  const tracker = attached(world.connection, 'a');

  await pass();
  world.server.change('a', { status: 'running', progress_percent: 40 });
  await pass();

  expect(world.server.socket.url).toBe('ws://forge.test/_api/ws');
  expect(world.server.socket.received).toEqual([
    { type: 'auth', token: 'good' },
    { type: 'subscribe', job_id: 'a', watch_token: null },
  ]);
  expect(tracker.values).toEqual([null, ['pending', null], ['running', 40]]);
  expect(tracker.states).toEqual(['idle', 'connecting', 'live']);
});

test('a page without a bearer token subscribes with watch tokens', async () => {
  world.server.addJob('a');
  world.server.addJob('b');
  const connection = connectTo(world.server, {});

  const a = attached(connection, 'a', 'watch a');
  const b = attached(connection, 'b', async () => 'watch b');
  await pass();

  expect(world.server.socket.received).toEqual([
    { type: 'subscribe', job_id: 'a', watch_token: 'watch a' },
    { type: 'subscribe', job_id: 'b', watch_token: 'watch b' },
  ]);
  expect(a.get()?.id).toBe('a');
  expect(b.get()?.id).toBe('b');
});

test('200 trackers share one socket', async () => {
  const ids = Array.from({ length: 200 }, (_, index) => `job ${index}`);
  for (const id of ids) world.server.addJob(id);

  const trackers = ids.map((id) => attached(world.connection, id));
  await pass();

  expect(world.server.sockets).toHaveLength(1);
  expect(trackers.map((tracker) => tracker.get()?.id)).toEqual(ids);
});

test('two trackers of one job share its subscription until the last one ends it', async () => {
  world.server.addJob('a', { progress_percent: 40 });
  const first = attached(world.connection, 'a');
  await pass();

  const second = attached(world.connection, 'a');
  const known = second.get();
  first.cleanup();
  await pass();
  world.server.change('a', { progress_percent: 60 });
  await pass();

  expect(known?.progress_percent).toBe(40);
  expect(world.server.followed).toEqual(['a']);
  expect(first.get()?.progress_percent).toBe(40);
  expect(second.get()?.progress_percent).toBe(60);

  second.cleanup();
  await pass();

  expect(world.server.followed).toEqual([]);
});

test('a job that ends is no longer followed, and the socket closes when none is', async () => {
  world.server.addJob('a');
  world.server.addJob('b');
  const a = attached(world.connection, 'a');
  const b = attached(world.connection, 'b');
  await pass();

  world.server.finish('a');
  await pass();

  expect(world.server.followed).toEqual(['b']);
  expect(a.states.at(-1)).toBe('idle');
  expect(b.states.at(-1)).toBe('live');

  world.server.finish('b');
  await pass();

  expect(world.server.openSockets).toHaveLength(1);

  await pass(3000);

  expect(world.server.openSockets).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test.each(['completed', 'failed', 'dead_letter', 'cancelled'] as const)(
  '%s is final',
  async (status) => {
    world.server.addJob('a');
    attached(world.connection, 'a');
    await pass();

    world.server.change('a', { status });
    await pass();

    expect(world.server.followed).toEqual([]);
  },
);

test('the next job uses a socket that has not closed yet', async () => {
  world.server.addJob('a', { status: 'completed' });
  world.server.addJob('b');
  attached(world.connection, 'a');
  await pass(2000);

  const b = attached(world.connection, 'b');
  await pass(5000);

  expect(world.server.sockets).toHaveLength(1);
  expect(world.server.followed).toEqual(['b']);
  expect(b.states).toEqual(['idle', 'live']);
});

test('a job that is followed after the socket closed opens another', async () => {
  world.server.addJob('a', { status: 'completed' });
  world.server.addJob('b');
  attached(world.connection, 'a');
  await pass(5000);

  const b = attached(world.connection, 'b');
  await pass();

  expect(world.server.sockets).toHaveLength(2);
  expect(b.states).toEqual(['idle', 'connecting', 'live']);
});

test('a job whose following ends before the socket is open is not subscribed', async () => {
  world.server.addJob('a');
  world.server.addJob('b');
  attached(world.connection, 'a').cleanup();
  attached(world.connection, 'b');

  await pass();

  expect(world.server.followed).toEqual(['b']);
});

test('a job whose token arrives after its following ended is not subscribed', async () => {
  world.server.addJob('a');
  world.server.addJob('b');
  let give: (token: string) => void = () => {};
  const token = () =>
    new Promise<string>((resolve) => {
      give = resolve;
    });
  const connection = connectTo(world.server, {});
  const a = attached(connection, 'a', token);
  attached(connection, 'b', 'watch b');
  await pass();

  a.cleanup();
  give('watch a');
  await pass();

  expect(world.server.followed).toEqual(['b']);
});

test('the end of the following ends the wait for the next attempt', async () => {
  world.server.isUp = false;
  const tracker = attached(world.connection, 'a');
  await pass(60_000);

  tracker.cleanup();
  await pass(3100);

  expect(vi.getTimerCount()).toBe(0);
});

test.each([1000, 1006, 1008, 1009, 1011, 1012, 4401])(
  'a socket that is closed with %i is opened again and subscribes to every job',
  async (code) => {
    world.server.addJob('a');
    world.server.addJob('b');
    const connection = connectTo(world.server, { token: () => 'good' });
    const a = attached(connection, 'a');
    attached(connection, 'b');
    await pass();

    world.server.disconnect(code);
    world.server.change('a', { progress_percent: 70 });
    await pass(1000 + 100);

    expect(world.server.sockets).toHaveLength(2);
    expect(world.server.followed).toEqual(['a', 'b']);
    expect(a.get()?.progress_percent).toBe(70);
    expect(a.states.at(-1)).toBe('live');
  },
);

test('a lost socket is reported until it is back', async () => {
  world.server.addJob('a');
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.disconnect(1012);
  await pass(2000);

  expect(tracker.states).toEqual(['idle', 'connecting', 'live', 'connecting', 'live']);
});

test('delays between attempts double up to 30 seconds, within their jitter', async () => {
  world.server.addJob('a');
  world.server.isUp = false;
  attached(world.connection, 'a');

  await pass(200_000);

  const bounds = [1000, 4000, 8000, 16_000, 30_000, 30_000];
  for (const [index, bound] of bounds.entries()) {
    expect(delays()[index]).toBeGreaterThan(bound * 0.99);
    expect(delays()[index]).toBeLessThanOrEqual(bound + 5);
  }
});

test('jitter reaches down to no delay', async () => {
  vi.mocked(Math.random).mockReturnValue(0);
  world.server.addJob('a');
  world.server.isUp = false;
  attached(world.connection, 'a');

  await pass(30);

  // The time of a failed attempt, and the shortest timer.
  expect(new Set(delays())).toEqual(new Set([6]));
});

test('an update starts the delays again', async () => {
  world.server.addJob('a');
  world.server.isUp = false;
  attached(world.connection, 'a');
  await pass(60_000);
  world.server.isUp = true;
  await pass(30_000);
  const attempts = world.server.sockets.length;

  world.server.disconnect();
  await pass(1000);

  expect(world.server.sockets).toHaveLength(attempts + 1);
});

test('a state that is older than the last one is ignored', async () => {
  world.server.addJob('a', { version: 7, progress_percent: 70 });
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.change('a', { version: 6, progress_percent: 60 });
  world.server.change('a', { version: 7, progress_percent: 65 });
  await pass();

  expect(tracker.values).toEqual([null, ['pending', 70]]);
});

test('a job that the server does not find ends with its error, and no other job does', async () => {
  world.server.addJob('a');
  const missing = attached(world.connection, 'missing');
  const a = attached(world.connection, 'a');

  await pass();

  expect(missing.error.get()).toMatchObject({ code: 'not_found', message: 'not_found missing' });
  expect(missing.states.at(-1)).toBe('idle');
  expect(a.error.get()).toBeNull();
  expect(a.states.at(-1)).toBe('live');
});

test.each(['unavailable', 'internal', 'too_many'])(
  'a job whose subscription ends with %s is subscribed again',
  async (code) => {
    world.server.addJob('a');
    const tracker = attached(world.connection, 'a');
    await pass();

    world.server.socket.fail(code, 'a');
    await pass(2000);
    expect(world.server.followed).toEqual([]);
    await pass(6000);

    expect(world.server.followed).toEqual(['a']);
    expect(tracker.error.get()).toBeNull();
  },
);

test('a failure of a job that is no longer followed does not end its next follower', async () => {
  world.server.addJob('a');
  const connection = connectTo(world.server, {});
  let refuse: (error: Error) => void = () => {};
  const token = () =>
    new Promise<string>((_, reject) => {
      refuse = reject;
    });
  attached(connection, 'a', token).cleanup();
  const second = attached(connection, 'a', 'watch a');
  refuse(new ForgeError('forbidden', 'not yours'));

  await pass();

  expect(second.error.get()).toBeNull();
  expect(second.states.at(-1)).toBe('live');
});

test.each([
  ['https://forge.test', 'wss://forge.test/_api/ws'],
  ['https://shop.test/forge/', 'wss://shop.test/forge/_api/ws'],
  ['/forge', 'ws://localhost:3000/forge/_api/ws'],
  [undefined, 'ws://localhost:3000/_api/ws'],
])('the socket of url %s leads to %s', async (url, expected) => {
  attached(connectTo(world.server, { url }), 'a');

  await pass();

  expect(world.server.sockets[0]?.url).toBe(expected);
});
