import { expect, test } from 'vitest';
import { attached, fakeWorld, pass } from './support/follow.js';

const world = fakeWorld();

test('no socket follows more than 1,000 jobs', async () => {
  const ids = Array.from({ length: 2001 }, (_, index) => `job ${index}`);
  for (const id of ids) world.server.addJob(id);

  const trackers = ids.map((id) => attached(world.connection, id));
  await pass();

  expect(world.server.sockets.map((socket) => socket.followed.size)).toEqual([1000, 1000, 1]);
  expect(trackers.every((tracker) => tracker.get() !== null)).toBe(true);
});

test('a second tracker of a job uses its full socket', async () => {
  const ids = Array.from({ length: 1000 }, (_, index) => `job ${index}`);
  for (const id of ids) world.server.addJob(id);
  for (const id of ids) attached(world.connection, id);
  await pass();

  attached(world.connection, 'job 500');
  await pass();

  expect(world.server.sockets).toHaveLength(1);
});

test('a job beyond the limit joins a socket on which others ended', async () => {
  const ids = Array.from({ length: 1000 }, (_, index) => `job ${index}`);
  for (const id of [...ids, 'one more']) world.server.addJob(id);
  for (const id of ids) attached(world.connection, id);
  await pass();
  world.server.finish('job 0');
  await pass();

  attached(world.connection, 'one more');
  await pass();

  expect(world.server.sockets).toHaveLength(1);
});
