import { beforeEach, expect, test, vi } from 'vitest';
import { ForgeClient } from '../src/client.js';
import { ForgeError } from '../src/errors.js';
import type { ClientOptions } from '../src/http.js';
import { fakeWorld, pass } from './support/follow.js';
import { json, problem } from './support/server.js';

const world = fakeWorld();
let client: ForgeClient;

beforeEach(() => {
  client = clientOf({ token: 'good' });
});

function clientOf(options: ClientOptions): ForgeClient {
  const { fetch } = world.server;
  return new ForgeClient({
    url: 'http://forge.test/',
    fetch: fetch as typeof globalThis.fetch,
    ...options,
  });
}

/** Let a request come to its end, whatever that is. */
async function settled<T>(request: Promise<T>, within?: number): Promise<T> {
  request.catch(() => {});
  await pass(within);
  return request;
}

test.each([
  [
    'dispatch',
    () => client.dispatch('a b', { x: 1 }),
    'POST',
    'a%20b/dispatch',
    { args: { x: 1 } },
  ],
  ['get', () => client.get('a'), 'GET', 'a', undefined],
  ['cancel', () => client.cancel('a'), 'POST', 'a/cancel', undefined],
  ['cancel with a reason', () => client.cancel('a', 'no'), 'POST', 'a/cancel', { reason: 'no' }],
  ['runNow', () => client.runNow('a'), 'POST', 'a/run_now', undefined],
  ['delete', () => client.delete('a'), 'DELETE', 'a', undefined],
  ['watchToken', () => client.watchToken('a'), 'POST', 'a/watch_token', undefined],
])('%s', async (_, call, method, path, body) => {
  world.server.addJob('a');

  await settled<unknown>(call());

  expect(world.server.requests).toEqual([
    {
      method,
      path: `/_api/jobs/${path}`,
      body,
      headers: {
        Authorization: 'Bearer good',
        ...(body && { 'Content-Type': 'application/json' }),
      },
    },
  ]);
});

test('list filters by what is given', async () => {
  world.server.answer = () => json(200, { items: [], next_cursor: null, stopped_early: false });

  await settled(
    client.list({
      status: 'failed',
      type: 'export users',
      since: new Date('2030-01-01T00:00:00Z'),
      limit: 10,
      cursor: undefined,
    }),
  );

  expect(world.server.requests[0]?.path).toBe(
    '/_api/jobs?status=failed&type=export+users&since=2030-01-01T00%3A00%3A00.000Z&limit=10',
  );
});

test.each([
  ['mutations', () => client.callMutation('register.user', { email: 'a@b.c' })],
  ['actions', () => client.callAction('register.user', { email: 'a@b.c' })],
])('%s return their output', async (kind, call) => {
  world.server.answer = () => json(200, { id: 7 });

  const output = await settled<unknown>(call());

  expect(output).toEqual({ id: 7 });
  expect(world.server.requests[0]).toMatchObject({
    method: 'POST',
    path: `/_api/${kind}/register.user`,
    body: { email: 'a@b.c' },
  });
});

test('a problem becomes an error with its code, status and faults', async () => {
  const errors = [{ path: '$.args.format', message: 'required' }];
  world.server.answer = () => problem(422, 'invalid', { detail: 'a value is invalid', errors });

  const error = await settled(client.get('a')).catch((cause) => cause);

  expect(error).toBeInstanceOf(ForgeError);
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({
    name: 'ForgeError',
    code: 'invalid',
    status: 422,
    message: 'a value is invalid',
    faults: errors,
    retryAfter: 0,
  });
});

test('an error without faults has none', async () => {
  world.server.answer = () => problem(404, 'not_found');

  const error = await settled(client.get('a')).catch((cause) => cause);

  expect(error.faults).toEqual([]);
});

test.each([
  ['a page', 200, '<!doctype html>'],
  ['a page of an error', 404, '<h1>Not found</h1>'],
  ['JSON of another server', 400, '{"message": "no"}'],
  ['nothing', 200, ''],
])('%s is an unexpected response', async (_, status, text) => {
  world.server.answer = () => new Response(text, { status });

  const error = await settled(client.get('a')).catch((cause) => cause);

  expect(error).toMatchObject({ code: 'unexpected_response', status });
  expect(error.message).toContain('GET /_api/jobs/a');
});

test('a request that is safe to repeat survives a restart of the server', async () => {
  world.server.addJob('a');
  world.server.isUp = false;
  const job = client.get('a');
  await pass(500);

  world.server.isUp = true;
  await pass(4000);

  expect((await job).id).toBe('a');
});

test.each([502, 503, 504])(
  'a request that is safe to repeat is retried after %i',
  async (status) => {
    world.server.addJob('a');
    let failures = 3;
    world.server.answer = () =>
      failures-- > 0 ? new Response('<h1>Bad gateway</h1>', { status }) : undefined;

    const job = await settled(client.get('a'), 20_000);

    expect(job.id).toBe('a');
    expect(world.server.requests).toHaveLength(4);
  },
);

test('a request is given up after four attempts', async () => {
  world.server.isUp = false;

  const error = await settled(client.get('a'), 60_000).catch((cause) => cause);

  expect(error).toMatchObject({ code: 'network', status: 0 });
  expect(error.message).toBe('GET /_api/jobs/a: Failed to fetch');
  expect(error.cause).toBeInstanceOf(TypeError);
  expect(world.server.requests).toHaveLength(4);
});

test.each([400, 403, 404, 409, 422, 429, 500])('%i is not retried', async (status) => {
  world.server.answer = () => problem(status, 'some_code');

  await expect(settled(client.get('a'), 60_000)).rejects.toMatchObject({ status });

  expect(world.server.requests).toHaveLength(1);
});

test('a retry waits as long as the server asks', async () => {
  world.server.answer = () => problem(503, 'unavailable', {}, { 'Retry-After': '12' });
  client.get('a').catch(() => {});

  await pass(11_900);
  expect(world.server.requests).toHaveLength(1);
  await pass(300);
  expect(world.server.requests).toHaveLength(2);
});

test('a wait of more than 30 seconds is left to the caller', async () => {
  world.server.answer = () => problem(503, 'unavailable', {}, { 'Retry-After': '120' });

  await expect(settled(client.get('a'))).rejects.toMatchObject({ retryAfter: 120 });

  expect(world.server.requests).toHaveLength(1);
});

test('a date in Retry-After counts as no time', async () => {
  const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
  world.server.answer = () => problem(429, 'too_many', {}, { 'Retry-After': date });

  await expect(settled(client.get('a'))).rejects.toMatchObject({ retryAfter: 0 });
});

test.each([
  ['a mutation', () => client.callMutation('pay')],
  ['an action', () => client.callAction('pay')],
  ['a dispatch without a key', () => client.dispatch('pay')],
])('%s is not retried', async (_, call) => {
  world.server.isUp = false;

  await expect(settled<unknown>(call(), 60_000)).rejects.toMatchObject({ code: 'network' });

  expect(world.server.requests).toHaveLength(1);
});

test('a dispatch with a key is retried', async () => {
  world.server.isUp = false;
  client.dispatch('pay', {}, { idempotencyKey: 'order 1' }).catch(() => {});

  await pass(60_000);

  expect(world.server.requests).toHaveLength(4);
});

test('a token that is rejected is fetched again, once', async () => {
  world.server.addJob('a');
  const token = vi.fn().mockResolvedValueOnce('old').mockResolvedValue('good');
  client = clientOf({ token });

  expect((await settled(client.get('a'))).id).toBe('a');
  expect(token).toHaveBeenCalledTimes(2);

  await settled(client.get('a'));
  expect(token).toHaveBeenCalledTimes(2);
});

test('requests at the same time fetch a token once', async () => {
  world.server.addJob('a');
  const token = vi.fn().mockResolvedValueOnce('old').mockResolvedValue('good');
  client = clientOf({ token });

  await settled(Promise.all([client.get('a'), client.get('a'), client.get('a')]));

  expect(token).toHaveBeenCalledTimes(2);
});

test('a token that is rejected twice is an error', async () => {
  const token = vi.fn(async () => 'old');
  client = clientOf({ token });

  const request = settled(client.get('a'));

  await expect(request).rejects.toMatchObject({ code: 'unauthenticated', status: 401 });
  expect(token).toHaveBeenCalledTimes(2);
});

test('a token that is a string is not sent twice', async () => {
  client = clientOf({ token: 'old' });

  await expect(settled(client.get('a'))).rejects.toMatchObject({ status: 401 });

  expect(world.server.requests).toHaveLength(1);
});

test('a token function that fails is the error of the request', async () => {
  const cause = new Error('signed out');
  client = clientOf({ token: () => Promise.reject(cause) });

  const error = await settled(client.get('a'), 60_000).catch((error_) => error_);

  expect(error).toMatchObject({ code: 'token', message: 'signed out', cause });
  expect(world.server.requests).toEqual([]);
});

test('a token function that threw at once is called again', async () => {
  world.server.addJob('a');
  const token = vi.fn(() => 'good');
  token.mockImplementationOnce(() => {
    throw new Error('not yet');
  });
  client = clientOf({ token });
  await expect(settled(client.get('a'))).rejects.toMatchObject({ message: 'not yet' });

  expect((await settled(client.get('a'))).id).toBe('a');
});

test('a token may be returned without a promise, and be empty', async () => {
  world.server.tokens.clear();
  world.server.addJob('a');
  client = clientOf({ token: () => '' });

  await settled(client.get('a'));

  expect(world.server.requests[0]?.headers).toEqual({});
});

test('a caller can abort a request', async () => {
  const abort = new AbortController();
  const request = client.get('a', { signal: abort.signal });
  const rejected = expect(request).rejects.toThrow('enough');
  await pass(1);

  abort.abort(new Error('enough'));
  await pass();

  await rejected;
  expect(world.server.requests).toHaveLength(1);
});

test('a caller can abort the wait for a retry', async () => {
  world.server.isUp = false;
  const abort = new AbortController();
  const request = client.get('a', { signal: abort.signal });
  const rejected = expect(request).rejects.toThrow('enough');
  await pass(50);

  abort.abort(new Error('enough'));
  await pass(1);

  await rejected;
  expect(world.server.requests).toHaveLength(1);
});

test('an input that is not JSON is the error of the caller', async () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;

  await expect(settled(client.dispatch('a', circular))).rejects.toBeInstanceOf(TypeError);

  expect(world.server.requests).toEqual([]);
});

test('another codec keeps large integers', async () => {
  const keepIntegers = (_key: string, value: unknown, context?: { source?: string }): unknown => {
    const source = context?.source ?? '';
    const isRounded = typeof value === 'number' && !Number.isSafeInteger(value);
    return isRounded && /^-?\d+$/.test(source) ? BigInt(source) : value;
  };
  const codec = {
    parse: (text: string) => JSON.parse(text, keepIntegers),
    stringify: vi.fn(() => '{"amount":9007199254740993}'),
  };
  const bodies: unknown[] = [];
  const fetch = vi.fn(async (_: unknown, init?: RequestInit) => {
    bodies.push(init?.body);
    return new Response('{"balance":9007199254740993,"rate":0.1,"small":7}');
  });
  client = clientOf({ fetch, json: codec });

  const output = await client.callAction('pay', { amount: 9007199254740993n });

  expect(codec.stringify).toHaveBeenCalledWith({ amount: 9007199254740993n });
  expect(bodies).toEqual(['{"amount":9007199254740993}']);
  expect(output).toEqual({ balance: 9007199254740993n, rate: 0.1, small: 7 });
});

test('the address of the page is the default', async () => {
  const fetch = vi.fn(async (_target: unknown) => json(200, {}));
  client = clientOf({ url: undefined, fetch });

  await client.get('a');

  expect(fetch.mock.calls[0]?.[0]).toBe('/_api/jobs/a');
});
