import { beforeEach, expect, test, vi } from 'vitest';
import { attached, connectTo, fakeWorld, pass } from './support/follow.js';

const world = fakeWorld();

beforeEach(() => {
  world.server.addJob('a');
  world.server.addJob('b');
});

/** End the access of every bearer token but this one. */
function expireAllBut(token: string): void {
  world.server.tokens.clear();
  world.server.tokens.add(token);
  world.server.disconnect(4401);
}

test('a bearer token that expires is replaced, without a delay', async () => {
  const token = vi.fn().mockResolvedValueOnce('good').mockResolvedValueOnce('better');
  const tracker = attached(connectTo(world.server, { token }), 'a');
  await pass();

  expireAllBut('better');
  await pass();

  expect(token).toHaveBeenCalledTimes(2);
  expect(world.server.followed).toEqual(['a']);
  expect(tracker.states).toEqual(['idle', 'connecting', 'live']);
});

test('a bearer token can be replaced again after an update', async () => {
  const token = vi.fn(async () => [...world.server.tokens].at(-1) ?? '');
  attached(connectTo(world.server, { token }), 'a');
  await pass();

  for (const next of ['second', 'third', 'fourth']) {
    expireAllBut(next);
    await pass();
  }

  expect(world.server.followed).toEqual(['a']);
  expect(token).toHaveBeenCalledTimes(4);
});

test('a bearer token that is rejected after its renewal ends the jobs that need it', async () => {
  const token = vi.fn(async () => 'good');
  const connection = connectTo(world.server, { token });
  const a = attached(connection, 'a');
  const b = attached(connection, 'b', 'watch b');
  await pass();

  expireAllBut('better');
  await pass();

  expect(a.error.get()).toMatchObject({
    code: 'unauthenticated',
    status: 401,
    message: 'The server rejected the token, or it has expired.',
  });
  expect(a.states.at(-1)).toBe('idle');
  expect(token).toHaveBeenCalledTimes(2);

  world.server.change('b', { progress_percent: 60 });
  await pass(5000);

  expect(b.error.get()).toBeNull();
  expect(b.get()?.progress_percent).toBe(60);
});

test('a token that is a string ends its jobs when it expires', async () => {
  const a = attached(world.connection, 'a');
  await pass();

  expireAllBut('better');
  await pass();

  expect(a.error.get()?.code).toBe('unauthenticated');
  expect(world.server.sockets).toHaveLength(1);
  await pass(10_000);
  expect(vi.getTimerCount()).toBe(0);
});

test('a job that is attached after a rejection has the next token', async () => {
  const token = vi.fn(async () => 'good');
  const connection = connectTo(world.server, { token });
  attached(connection, 'a');
  await pass();
  expireAllBut('better');
  await pass(10_000);

  token.mockResolvedValue('better');
  const again = attached(connection, 'a');
  await pass();

  expect(again.states.at(-1)).toBe('live');
});

test('a token function that fails is called again, with growing delays', async () => {
  const token = vi.fn().mockRejectedValue(new Error('no network'));
  const tracker = attached(connectTo(world.server, { token }), 'a');

  await pass(3000);
  token.mockResolvedValue('good');
  await pass(10_000);

  expect(tracker.error.get()).toBeNull();
  expect(tracker.states.at(-1)).toBe('live');
});

test('a watch token that expires is replaced', async () => {
  const token = vi.fn().mockResolvedValueOnce('watch a').mockResolvedValueOnce('watch a again');
  const tracker = attached(connectTo(world.server, {}), 'a', token);
  await pass();

  world.server.watchTokens.delete('watch a');
  world.server.watchTokens.set('watch a again', 'a');
  world.server.socket.fail('unauthenticated', 'a');
  world.server.disconnect(4401);
  await pass(1100);

  expect(token).toHaveBeenCalledTimes(2);
  expect(world.server.followed).toEqual(['a']);
  expect(tracker.error.get()).toBeNull();
});

test.each(['open', 'refused'] as const)(
  'a watch token can be replaced again after an update, with sockets that are %s',
  async (socketMode) => {
    world.server.socketMode = socketMode;
    const token = vi.fn(async () => `watch ${token.mock.calls.length}`);
    world.server.watchTokens.set('watch 1', 'a');
    const tracker = attached(connectTo(world.server, {}), 'a', token);
    await pass();

    for (const number of [2, 3, 4]) {
      world.server.watchTokens.clear();
      world.server.watchTokens.set(`watch ${number}`, 'a');
      world.server.disconnect();
      await pass(10_000);
      world.server.change('a', { progress_percent: number });
      await pass(5000);
    }

    expect(tracker.error.get()).toBeNull();
    expect(tracker.get()?.progress_percent).toBe(4);
    expect(token).toHaveBeenCalledTimes(4);
  },
);

test('a watch token that is reported twice while it is replaced is replaced once', async () => {
  let give: (token: string) => void = () => {};
  const token = vi.fn().mockResolvedValueOnce('watch a');
  token.mockImplementationOnce(
    () =>
      new Promise<string>((resolve) => {
        give = resolve;
      }),
  );
  const tracker = attached(connectTo(world.server, {}), 'a', token);
  await pass();

  world.server.socket.fail('unauthenticated', 'a');
  world.server.socket.fail('unauthenticated', 'a');
  await pass();
  give('watch a');
  await pass();

  expect(token).toHaveBeenCalledTimes(2);
  expect(world.server.followed).toEqual(['a']);
  expect(tracker.error.get()).toBeNull();
});

test('a watch token that is rejected after its renewal ends its job', async () => {
  const token = vi.fn(async () => 'of another job');
  const tracker = attached(connectTo(world.server, {}), 'a', token);

  await pass();

  expect(token).toHaveBeenCalledTimes(2);
  expect(tracker.error.get()).toMatchObject({ code: 'unauthenticated' });
  expect(tracker.states.at(-1)).toBe('idle');
});

test('a watch token that is a string ends its job when it expires', async () => {
  const tracker = attached(connectTo(world.server, {}), 'a', 'watch a');
  await pass();

  world.server.socket.fail('unauthenticated', 'a');
  await pass();

  expect(tracker.error.get()?.code).toBe('unauthenticated');
});

test('a function of watch tokens that fails is called again', async () => {
  const token = vi.fn().mockRejectedValueOnce(new Error('no network')).mockResolvedValue('watch a');
  const tracker = attached(connectTo(world.server, {}), 'a', token);
  await pass();
  expect(tracker.error.get()).toBeNull();

  await pass(8000);

  expect(tracker.states.at(-1)).toBe('live');
});

test('a newer watch token replaces an older one', async () => {
  const connection = connectTo(world.server, {});
  attached(connection, 'a', 'watch a');
  await pass();
  world.server.watchTokens.set('newer', 'a');

  attached(connection, 'a', 'newer');
  world.server.disconnect();
  await pass(1100);

  expect(world.server.socket.received).toEqual([
    { type: 'subscribe', job_id: 'a', watch_token: 'newer' },
  ]);
});

test('a watch token does not replace the access of the bearer token', async () => {
  attached(world.connection, 'a');
  await pass();

  attached(world.connection, 'a', 'watch a');
  await pass();

  expect(world.server.socket.received.at(-1)).toEqual({
    type: 'subscribe',
    job_id: 'a',
    watch_token: null,
  });
});
