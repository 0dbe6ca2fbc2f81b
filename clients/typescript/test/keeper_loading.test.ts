import { expect, test, vi } from 'vitest';
import { attached, fakeWorld, pass } from './support/follow.js';

const world = fakeWorld();
let isReachable = false;

vi.mock('../src/live/keeper.js', async (original) => {
  const { keep } = await original<typeof import('../src/live/keeper.js')>();
  return {
    get keep() {
      if (!isReachable) throw new TypeError('Failed to fetch dynamically imported module');
      return keep;
    },
  };
});

test('without the lazy chunk, updates arrive over the socket', async () => {
  world.server.addJob('a');
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.change('a', { progress_percent: 40 });
  await pass();

  expect(tracker.get()?.progress_percent).toBe(40);
  expect(tracker.states.at(-1)).toBe('live');
});

test('the lazy chunk is requested again at most every five seconds', async () => {
  world.server.addJob('a');
  attached(world.connection, 'a');
  await pass();
  const timers = vi.getTimerCount();

  for (let percent = 0; percent < 20; percent++) {
    world.server.change('a', { progress_percent: percent });
    await pass();
  }

  expect(vi.getTimerCount()).toBe(timers);
});

test('a socket that is lost without the lazy chunk is opened again', async () => {
  world.server.addJob('a');
  const tracker = attached(world.connection, 'a');
  await pass();

  world.server.disconnect();
  await pass();
  expect(tracker.states.at(-1)).toBe('offline');
  await pass(5000);

  expect(tracker.states.at(-1)).toBe('live');
});

test('the chunk is loaded when it can be', async () => {
  world.server.addJob('a');
  attached(world.connection, 'a');
  await pass();

  isReachable = true;
  await pass(6000);
  world.server.socket.isHalfOpen = true;
  await pass(40_000);

  expect(world.server.sockets).toHaveLength(2);
});
