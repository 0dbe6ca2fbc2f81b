// Lists of jobs: reported when they may have changed, whatever happens to the socket.
import { expect, test } from 'vitest';
import { ForgeClient } from '../src/client.js';
// Loaded here: while timers are faked, a module cannot be loaded.
import '../src/live/lists.js';
import { fakeWorld, happen, pass, sleep } from './support/follow.js';

const world = fakeWorld();

/** Watch a list; return how often it was reported, and a function that ends this. */
function watched(client: ForgeClient, type: string) {
  const list = { reports: 0, end: () => {} };
  list.end = client.watchList({ type }, () => {
    list.reports++;
  });
  return list;
}

function newClient(token: string | (() => string) = 'good'): ForgeClient {
  const { fetch, WebSocket } = world.server;
  return new ForgeClient({
    url: 'http://forge.test/',
    fetch: fetch as typeof globalThis.fetch,
    WebSocket,
    token,
  });
}

test('lists of a client share a socket and are reported once, then at each change', async () => {
  const client = newClient();
  const mail = watched(client, 'mail');
  const other = watched(client, 'other');
  await pass();
  expect([mail.reports, other.reports]).toEqual([1, 1]);
  expect(world.server.sockets).toHaveLength(1);
  expect(world.server.socket.url).toBe('ws://forge.test/_api/ws');
  expect([...world.server.socket.lists.values()]).toEqual([{ type: 'mail' }, { type: 'other' }]);
  const [id] = world.server.socket.lists.keys();
  world.server.socket.changed(id as string);
  await pass();
  expect([mail.reports, other.reports]).toEqual([2, 1]);
});

test('the socket closes some time after the last list ended', async () => {
  const client = newClient();
  const list = watched(client, 'mail');
  await pass();
  list.end();
  watched(client, 'other').end();
  await pass(1000);
  expect(world.server.openSockets).toHaveLength(1);
  expect(world.server.socket.lists.size).toBe(0);
  await pass(5000);
  expect(world.server.openSockets).toHaveLength(0);
  const again = watched(client, 'again');
  await pass();
  expect(again.reports).toBe(1);
});

test('a list that ends before anything was loaded opens nothing', async () => {
  watched(newClient(), 'mail').end();
  await pass();
  expect(world.server.sockets).toHaveLength(0);
});

test('a lost socket is replaced, and its lists are subscribed and reported again', async () => {
  const list = watched(newClient(), 'mail');
  await pass();
  world.server.socket.closeFromServer(1012);
  await pass(3000);
  expect(world.server.openSockets).toHaveLength(1);
  expect(list.reports).toBe(2);
});

test('without a socket lists are reported every few seconds', async () => {
  world.server.socketMode = 'refused';
  const list = watched(newClient(), 'mail');
  await pass(11_000);
  expect(list.reports).toBe(2);
  world.server.socketMode = 'open';
  await pass(40_000);
  expect(world.server.socket.lists.size).toBe(1);
});

test('a refused list is reported every few seconds, and asked for again', async () => {
  world.server.isRefusingLists = true;
  const list = watched(newClient(), 'mail');
  await pass(6000);
  expect(list.reports).toBe(1);
  world.server.isRefusingLists = false;
  await pass(6000);
  expect(world.server.socket.lists.size).toBe(1);
});

test('a socket without answers is replaced', async () => {
  const list = watched(newClient(), 'mail');
  await pass();
  const first = world.server.socket;
  first.isHalfOpen = true;
  await pass(50_000);
  expect(world.server.socket).not.toBe(first);
  expect(list.reports).toBeGreaterThan(1);
});

test('after a sleep and after a change of the network another socket is opened', async () => {
  watched(newClient(), 'mail');
  await pass();
  sleep(60_000);
  await pass(4000);
  expect(world.server.sockets).toHaveLength(2);
  happen('online');
  await pass(4000);
  expect(world.server.sockets).toHaveLength(3);
  expect(world.server.openSockets).toHaveLength(1);
});

test('a rejected token is fetched again', async () => {
  const tokens = ['bad', 'good'];
  const list = watched(
    newClient(() => tokens.shift() ?? 'good'),
    'mail',
  );
  await pass(4000);
  expect(world.server.socket.isAuthenticated).toBe(true);
  expect(list.reports).toBeGreaterThan(0);
});
