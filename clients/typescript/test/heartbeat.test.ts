import { beforeEach, expect, test, vi } from 'vitest';
import { attached, connectTo, fakeWorld, happen, pass, sleep } from './support/follow.js';

const world = fakeWorld();
const TICK = 2000;

beforeEach(() => {
  world.server.addJob('a');
  world.server.addJob('b');
});

/** The messages that the newest socket received after authentication. */
function subscriptions(): unknown[] {
  return world.server.socket.received.filter((message) => message.type === 'subscribe');
}

test('a silent socket is asked for a known state every 20 seconds', async () => {
  attached(world.connection, 'a');
  attached(world.connection, 'b');
  await pass();
  expect(subscriptions()).toHaveLength(2);

  await pass(22_000);
  expect(subscriptions()).toHaveLength(3);

  await pass(44_000);
  expect(subscriptions()).toHaveLength(5);
  expect(world.server.sockets).toHaveLength(1);
});

test('updates take the place of heartbeats', async () => {
  attached(world.connection, 'a');
  await pass();

  for (let second = 0; second < 60; second += 10) {
    world.server.change('a', { progress_percent: second });
    await pass(10_000);
  }

  expect(subscriptions()).toHaveLength(1);
});

test('a half-open socket is found by its heartbeat and replaced', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.socket.isHalfOpen = true;
  await pass(20_000 + 10_000);
  expect(tracker.states.at(-1)).toBe('connecting');
  world.server.change('a', { progress_percent: 50 });
  await pass(1000 + TICK);

  expect(world.server.sockets).toHaveLength(2);
  expect(tracker.get()?.progress_percent).toBe(50);
});

test('a subscription that is not answered finds a half-open socket sooner', async () => {
  attached(world.connection, 'a');
  await pass();

  world.server.socket.isHalfOpen = true;
  const b = attached(world.connection, 'b');
  await pass(10_000 + TICK + 1100);

  expect(world.server.sockets).toHaveLength(2);
  expect(b.get()?.id).toBe('b');
});

test('a handshake without a response is given up after 10 seconds', async () => {
  world.server.socketMode = 'hanging';
  attached(world.connection, 'a');

  await pass(9000);
  expect(world.server.sockets).toHaveLength(1);
  await pass(5000);

  expect(world.server.sockets).toHaveLength(2);
  expect(world.server.openSockets).toHaveLength(1);
});

test('a token function without an answer is called again', async () => {
  const token = vi.fn(() => new Promise<string>(() => {}));
  attached(connectTo(world.server, { token }), 'a');
  await pass(9000);
  expect(token).toHaveBeenCalledTimes(1);

  token.mockResolvedValue('good');
  await pass(5000);

  expect(world.server.followed).toEqual(['a']);
});

test('a token that arrives after its attempt was given up opens no second socket', async () => {
  const give: ((token: string) => void)[] = [];
  const token = () =>
    new Promise<string>((resolve) => {
      give.push(resolve);
    });
  attached(connectTo(world.server, { token }), 'a');
  await pass(14_000);

  for (const answer of give) answer('good');
  await pass();

  expect(give).toHaveLength(2);
  expect(world.server.sockets).toHaveLength(1);
});

test('after a sleep of 10 minutes the socket is replaced at once', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.socket.isHalfOpen = true;
  sleep(600_000);
  world.server.change('a', { progress_percent: 90 });
  await pass(TICK + 100);

  expect(world.server.sockets).toHaveLength(2);
  expect(tracker.get()?.progress_percent).toBe(90);
});

test('after a sleep, a delayed attempt is made at once', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();
  world.server.isUp = false;
  world.server.disconnect();
  await pass(60_000);

  world.server.isUp = true;
  sleep(600_000);
  await pass(TICK + 100);

  expect(tracker.states.at(-1)).toBe('live');
});

test('throttled timers cause a heartbeat, not another socket', async () => {
  attached(world.connection, 'a');
  await pass();

  for (let minute = 0; minute < 5; minute++) {
    sleep(60_000);
    await pass(TICK);
  }

  expect(world.server.sockets).toHaveLength(1);
  expect(subscriptions()).toHaveLength(1 + 5);
});

test('timers that are a little late cause nothing', async () => {
  attached(world.connection, 'a');
  await pass();

  for (let second = 0; second < 60; second += 12) {
    sleep(10_000);
    await pass(TICK);
    world.server.change('a', { progress_percent: second });
    await pass();
  }
  sleep(10_000);
  await pass(TICK);
  sleep(10_000);
  await pass(TICK);

  expect(world.server.sockets).toHaveLength(1);
});

test('a clock that is set back does not delay heartbeats', async () => {
  attached(world.connection, 'a');
  await pass();

  sleep(-3_600_000);
  world.server.socket.isHalfOpen = true;
  await pass(20_000 + 10_000 + 1000 + 4 * TICK);

  expect(world.server.sockets).toHaveLength(2);
});

test('when the network is back, the socket is replaced at once', async () => {
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.socket.isHalfOpen = true;
  world.server.change('a', { progress_percent: 90 });
  happen('online');
  await pass();

  expect(world.server.sockets).toHaveLength(2);
  expect(tracker.get()?.progress_percent).toBe(90);
});

test.each(['online', 'visibilitychange', 'pageshow'])(
  '%s ends the wait for the next attempt',
  async (type) => {
    world.server.isUp = false;
    const tracker = attached(world.connection, 'a');
    await pass(60_000);
    world.server.isUp = true;

    happen(type);
    await pass();

    expect(tracker.states.at(-1)).toBe('live');
    expect(world.server.openSockets).toHaveLength(1);
  },
);

test.each(['visibilitychange', 'pageshow', 'offline'])(
  '%s asks whether the socket is alive',
  async (type) => {
    attached(world.connection, 'a');
    await pass();

    happen(type);
    happen(type);
    await pass();
    expect(subscriptions()).toHaveLength(2);
    expect(world.server.sockets).toHaveLength(1);

    world.server.socket.isHalfOpen = true;
    happen(type);
    await pass(10_000 + TICK + 1100);
    expect(world.server.sockets).toHaveLength(2);
  },
);

test('no listener remains when nothing is followed', async () => {
  const added = vi.spyOn(globalThis, 'addEventListener');
  const removed = vi.spyOn(globalThis, 'removeEventListener');
  const tracker = attached(world.connection, 'a');
  await pass();

  tracker.cleanup();
  await pass(5000);

  expect(added).toHaveBeenCalledTimes(4);
  expect(removed.mock.calls).toEqual(added.mock.calls);
  expect(vi.getTimerCount()).toBe(0);
});
