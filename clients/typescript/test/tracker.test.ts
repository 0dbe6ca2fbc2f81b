import { beforeEach, expect, test, vi } from 'vitest';
import { ForgeError } from '../src/errors.js';
import type { StartOptions } from '../src/jobs.js';
import { createJobTracker, type JobTracker } from '../src/tracker.js';
import { connectTo, fakeWorld, pass } from './support/follow.js';
import { problem } from './support/server.js';

interface ExportInput {
  format: string;
}
interface ExportOutput {
  file: string;
}

const world = fakeWorld();
let tracker: JobTracker<ExportInput, ExportOutput>;

beforeEach(() => {
  tracker = createJobTracker('export_users', { client: world.client });
});

/** The dispatches that the server received. */
function dispatches(): Record<string, unknown>[] {
  const made = world.server.requests.filter(({ path }) => path.endsWith('/dispatch'));
  return made.map(({ body }) => body as Record<string, unknown>);
}

/** Start the tracker and let its job's first state arrive. */
async function started(input: ExportInput = { format: 'csv' }): Promise<string> {
  const jobId = tracker.start(input);
  await pass();
  return jobId;
}

test('the value is null until the first state of the started job', async () => {
  const values: unknown[] = [];
  tracker.subscribe((job) => values.push(job?.status ?? null));

  const jobId = await started();
  world.server.change(jobId, { status: 'running', progress_percent: 40 });
  await pass();
  world.server.finish(jobId, { output: { file: 'users.csv' } });
  await pass();

  expect(values).toEqual([null, 'pending', 'running', 'completed']);
  expect(tracker.get()).toMatchObject({ id: jobId, output: { file: 'users.csv' } });
});

test('a started job is followed with the bearer token of the page', async () => {
  const jobId = await started();

  expect(world.server.socket.received).toEqual([
    { type: 'auth', token: 'good' },
    { type: 'subscribe', job_id: jobId, watch_token: null },
  ]);
});

test('start dispatches the input with a key of its own', async () => {
  await started({ format: 'csv' });
  await started({ format: 'pdf' });

  const [first, second] = dispatches();
  expect(world.server.requests[0]).toMatchObject({
    method: 'POST',
    path: '/_api/jobs/export_users/dispatch',
    headers: { Authorization: 'Bearer good', 'Content-Type': 'application/json' },
    body: { args: { format: 'csv' } },
  });
  expect(first?.idempotency_key).toMatch(/^\d+-\d+-\d+-\d+$/);
  expect(second?.idempotency_key).not.toBe(first?.idempotency_key);
});

test('a request that is retried makes one job', async () => {
  let failures = 2;
  world.server.answer = () => {
    if (failures-- > 0) throw new TypeError('Failed to fetch');
    return undefined;
  };

  const jobId = tracker.start({ format: 'csv' });
  await pass(10_000);

  expect(await jobId).toBe('job-1');
  expect(new Set(dispatches().map((body) => body.idempotency_key)).size).toBe(1);
  expect(dispatches()).toHaveLength(3);
});

test('a type with its own rule for keys is dispatched without one', async () => {
  tracker = createJobTracker('export_users', { client: world.client }, { keyed: true });

  await started();

  expect(dispatches()).toEqual([{ args: { format: 'csv' } }]);
});

test('the options of start are those of a dispatch', async () => {
  const jobId = tracker.start(
    { format: 'csv' },
    {
      idempotencyKey: 'mine',
      priority: 'high',
      delay: '5m',
      scheduledAt: new Date('2030-01-01T00:00:00Z'),
      expiresAt: '2030-01-02T00:00:00Z',
      correlationId: 'c',
      payloadVersion: '2.0',
      tenantId: 7,
      queue: 'slow',
      tags: ['a'],
    },
  );
  await pass();

  await jobId;
  expect(dispatches()).toEqual([
    {
      args: { format: 'csv' },
      idempotency_key: 'mine',
      priority: 'high',
      delay: '5m',
      scheduled_at: '2030-01-01T00:00:00.000Z',
      expires_at: '2030-01-02T00:00:00Z',
      correlation_id: 'c',
      payload_version: '2.0',
      tenant_id: 7,
      queue: 'slow',
      tags: ['a'],
    },
  ]);
});

test('a started job is followed with its watch token if the page has no bearer token', async () => {
  world.server.tokens.clear();
  tracker = createJobTracker('export_users', {
    client: { connection: connectTo(world.server, {}) },
  });

  const jobId = await started();

  expect(world.server.socket.received).toEqual([
    { type: 'subscribe', job_id: jobId, watch_token: `watch ${jobId}` },
  ]);
});

test('the application can dispatch through its own backend', async () => {
  world.server.addJob('from backend');
  const start = vi.fn(async (_input: ExportInput, _options: StartOptions) => ({
    job_id: 'from backend',
    watch_token: 'watch from backend',
  }));
  tracker = createJobTracker('export_users', { client: world.client, start });

  const jobId = await started();

  expect(jobId).toBe('from backend');
  expect(start).toHaveBeenCalledWith(
    { format: 'csv' },
    { idempotencyKey: expect.stringMatching(/^\d+-/) },
  );
  expect(dispatches()).toEqual([]);
  expect(tracker.get()?.id).toBe('from backend');
  expect(world.server.socket.received.at(-1)).toMatchObject({ watch_token: 'watch from backend' });
});

test('a dead letter is a failed job', async () => {
  const jobId = await started();

  world.server.change(jobId, { status: 'dead_letter', state: 'failed', last_error: 'no disk' });
  await pass();

  const job = tracker.get();
  expect(job).toMatchObject({ status: 'failed', dead_lettered: true, last_error: 'no disk' });
});

test('a failed job without a dead letter says so', async () => {
  const jobId = await started();

  world.server.change(jobId, { status: 'failed', state: 'failed' });
  await pass();

  expect(tracker.get()).toMatchObject({ status: 'failed', dead_lettered: false });
});

test('a dispatch that fails rejects, and is the error of the tracker', async () => {
  const faults = [{ path: '$.args.format', message: 'required' }];
  world.server.answer = () => problem(422, 'invalid', { errors: faults });

  const jobId = tracker.start({ format: '' });
  const expected = { code: 'invalid', status: 422, message: 'invalid: what to do', faults };
  const rejected = expect(jobId).rejects.toMatchObject(expected);
  await pass();

  await rejected;
  expect(tracker.error.get()).toMatchObject(expected);
  expect(tracker.get()).toBeNull();
  await expect(tracker.done()).rejects.toMatchObject(expected);
});

test('an error of the own backend keeps its message', async () => {
  const cause = new Error('Your plan has no exports.');
  tracker = createJobTracker('export_users', { start: () => Promise.reject(cause) });

  const jobId = tracker.start({ format: 'csv' });

  await expect(jobId).rejects.toBeInstanceOf(ForgeError);
  expect(tracker.error.get()).toMatchObject({
    code: 'start',
    message: 'Your plan has no exports.',
    cause,
  });
});

test('the next start clears the error and the value', async () => {
  const jobId = await started();
  world.server.socket.fail('forbidden', jobId);
  await pass();
  expect(tracker.error.get()?.code).toBe('forbidden');

  const next = tracker.start({ format: 'csv' });

  expect(tracker.error.get()).toBeNull();
  expect(tracker.get()).toBeNull();
  await pass();
  await next;
});

test('a second start follows the second job alone', async () => {
  const first = await started();

  const second = await started();
  world.server.change(first, { progress_percent: 99 });
  await pass();

  expect(world.server.followed).toEqual([second]);
  expect(tracker.get()?.id).toBe(second);
});

test('a second start before the first is answered follows the second job alone', async () => {
  const first = tracker.start({ format: 'csv' });
  const second = tracker.start({ format: 'pdf' });
  await pass();

  expect(await first).toBe('job-1');
  expect(world.server.followed).toEqual([await second]);
  expect(tracker.get()?.id).toBe(await second);
});

test('cleanup ends the updates and not the job', async () => {
  const jobId = await started();

  tracker.cleanup();
  await pass();
  world.server.change(jobId, { progress_percent: 99 });
  await pass();

  expect(world.server.followed).toEqual([]);
  expect(world.server.requests.map(({ path }) => path)).toEqual([
    '/_api/jobs/export_users/dispatch',
  ]);
  expect(tracker.get()?.progress_percent).toBeNull();
  expect(tracker.connection.get()).toBe('idle');
});

test('after cleanup during start, the job is dispatched and not followed', async () => {
  const jobId = tracker.start({ format: 'csv' });
  tracker.cleanup();
  await pass(10_000);

  expect(await jobId).toBe('job-1');
  expect(world.server.sockets).toEqual([]);
  expect(tracker.get()).toBeNull();
});

test('after cleanup during start, a failure is not the error of the tracker', async () => {
  world.server.answer = () => problem(403, 'forbidden');
  const jobId = tracker.start({ format: 'csv' });
  tracker.cleanup();
  const rejected = expect(jobId).rejects.toMatchObject({ code: 'forbidden' });
  await pass();

  await rejected;
  expect(tracker.error.get()).toBeNull();
});

test('resume continues the updates that cleanup ended', async () => {
  const jobId = await started();
  tracker.cleanup();
  await pass();
  world.server.change(jobId, { progress_percent: 40 });

  tracker.resume();
  tracker.resume();
  await pass();

  expect(tracker.get()?.progress_percent).toBe(40);
  tracker.cleanup();
  await pass();
  expect(world.server.followed).toEqual([]);
});

test('resume during start follows the job once it is dispatched', async () => {
  const jobId = tracker.start({ format: 'csv' });
  tracker.cleanup();
  tracker.resume();
  await pass();

  expect(tracker.get()?.id).toBe(await jobId);
});

test('resume after start was answered follows the dispatched job', async () => {
  const jobId = tracker.start({ format: 'csv' });
  tracker.cleanup();
  await pass();

  tracker.resume();
  await pass();

  expect(tracker.get()?.id).toBe(await jobId);
});

test('resume does not follow a job that has ended', async () => {
  const jobId = await started();
  world.server.finish(jobId);
  await pass();
  tracker.cleanup();

  tracker.resume();
  await pass();

  expect(world.server.socket.received.filter(({ type }) => type === 'subscribe')).toHaveLength(1);
  await expect(tracker.done()).resolves.toBeNull();
});

test('done returns the output, before and after the end', async () => {
  const early = tracker.done();
  const jobId = await started();
  const meanwhile = tracker.done();

  world.server.finish(jobId, { output: { file: 'users.csv' } });
  await pass();

  for (const done of [early, meanwhile, tracker.done()]) {
    expect(await done).toEqual({ file: 'users.csv' });
  }
});

test.each([
  ['failed', { last_error: 'no disk' }, 'job_failed', 'no disk'],
  ['dead_letter', { last_error: 'no disk' }, 'job_failed', 'no disk'],
  ['cancelled', {}, 'job_cancelled', 'The job is cancelled.'],
] as const)('done rejects when the job is %s', async (status, fields, code, message) => {
  const jobId = await started();
  const rejected = expect(tracker.done()).rejects.toMatchObject({ code, message });

  world.server.change(jobId, { status, ...fields });
  await pass();

  await rejected;
  await expect(tracker.done()).rejects.toMatchObject({ code });
});

test('done rejects when the job can no longer be followed', async () => {
  const jobId = await started();
  const rejected = expect(tracker.done()).rejects.toMatchObject({ code: 'not_found' });

  world.server.socket.fail('not_found', jobId);
  await pass();

  await rejected;
});

test('done rejects when the tracker is cleaned up or follows another job', async () => {
  await started();
  const first = expect(tracker.done()).rejects.toMatchObject({ code: 'stopped' });
  await started();
  await first;

  const second = expect(tracker.done()).rejects.toMatchObject({ code: 'stopped' });
  tracker.cleanup();
  await second;
  await expect(tracker.done()).rejects.toMatchObject({ code: 'stopped' });
});

test('done after resume waits for the end', async () => {
  const jobId = await started();
  tracker.cleanup();
  tracker.resume();
  const done = tracker.done();
  await pass();

  world.server.finish(jobId, { output: { file: 'users.csv' } });
  await pass();

  expect(await done).toEqual({ file: 'users.csv' });
});

test('a failure that is not awaited is not an unhandled rejection', async () => {
  const unhandled = vi.fn();
  process.on('unhandledRejection', unhandled);
  const jobId = await started();

  world.server.change(jobId, { status: 'failed' });
  await pass();
  tracker.cleanup();
  vi.useRealTimers();
  await new Promise((resolve) => setImmediate(resolve));

  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

test('cancel requests the cancellation', async () => {
  const jobId = await started();

  const cancelled = tracker.cancel();
  await pass();

  await cancelled;
  expect(world.server.requests.at(-1)).toMatchObject({
    method: 'POST',
    path: `/_api/jobs/${jobId}/cancel`,
  });
  expect(tracker.get()?.status).toBe('pending');
});

test('cancel during start waits for the job', async () => {
  const jobId = tracker.start({ format: 'csv' });
  const cancelled = tracker.cancel();
  await pass();

  await cancelled;
  expect(world.server.requests.at(-1)?.path).toBe(`/_api/jobs/${await jobId}/cancel`);
});

test('cancel with a watch token alone is a clear error', async () => {
  world.server.addJob('a');
  tracker = createJobTracker('export_users', {
    client: { connection: connectTo(world.server, {}) },
  });
  tracker.attach('a', 'watch a');
  await pass();

  await expect(tracker.cancel()).rejects.toMatchObject({
    code: 'unauthenticated',
    message: 'A watch token cannot cancel: pass `cancel` to the tracker.',
  });

  expect(tracker.error.get()?.code).toBe('unauthenticated');
  expect(tracker.connection.get()).toBe('live');
  expect(world.server.requests).toEqual([]);
});

test('the application can cancel through its own backend', async () => {
  world.server.addJob('a');
  const cancel = vi.fn(async () => {});
  tracker = createJobTracker('export_users', {
    client: { connection: connectTo(world.server, {}) },
    cancel,
  });
  tracker.attach('a', 'watch a');

  await tracker.cancel();

  expect(cancel).toHaveBeenCalledWith('a');
});

test('a cancellation that fails does not end the updates', async () => {
  const jobId = await started();
  world.server.answer = () => problem(409, 'conflict');

  const rejected = expect(tracker.cancel()).rejects.toMatchObject({ code: 'conflict' });
  await pass();
  await rejected;
  world.server.finish(jobId, { output: { file: 'users.csv' } });
  await pass();

  expect(tracker.error.get()?.code).toBe('conflict');
  expect(await tracker.done()).toEqual({ file: 'users.csv' });
});

test('a cancellation that fails after cleanup is not the error of the tracker', async () => {
  await started();
  world.server.answer = () => problem(409, 'conflict');

  const rejected = expect(tracker.cancel()).rejects.toMatchObject({ code: 'conflict' });
  tracker.cleanup();
  await pass();

  await rejected;
  expect(tracker.error.get()).toBeNull();
});

test('cancel without a job is an error', async () => {
  await expect(tracker.cancel()).rejects.toMatchObject({ code: 'no_job' });
});

test('every verb works unbound', async () => {
  const { start, attach, cancel, done, cleanup, resume, subscribe, get } = tracker;

  const jobId = start({ format: 'csv' });
  await pass();
  attach(await jobId);
  const values: unknown[] = [];
  const unsubscribe = subscribe((job) => values.push(job?.status));
  const cancelled = cancel();
  await pass();
  await cancelled;
  world.server.finish(await jobId, { output: 1 });
  await pass();

  expect(await done()).toBe(1);
  expect(get()?.status).toBe('completed');
  expect(values).toEqual([undefined, 'pending', 'completed']);
  unsubscribe();
  cleanup();
  resume();
});

test('a subscriber may end or replace what it is called about', async () => {
  world.server.addJob('b');
  tracker.connection.subscribe((state) => {
    if (state === 'connecting') tracker.cleanup();
  });
  const jobId = await started();
  expect(world.server.followed).toEqual([]);

  const other = createJobTracker('export_users', { client: world.client });
  other.subscribe((job) => {
    if (job?.status === 'completed' && job.id !== 'b') other.attach('b');
  });
  other.attach(jobId);
  await pass();
  world.server.finish(jobId);
  await pass();

  expect(other.get()?.id).toBe('b');
});

test('a tracker without a client uses the configured one', async () => {
  vi.resetModules();
  const { configure, createJobTracker: create } = await import('../src/index.js');
  await import('../src/live/keeper.js');
  const { fetch, WebSocket } = world.server;
  const configured = create<ExportInput, ExportOutput>('export_users');
  configure({ token: 'good', fetch: fetch as typeof globalThis.fetch, WebSocket });

  const jobId = configured.start({ format: 'csv' });
  await pass();

  expect(configured.get()?.id).toBe(await jobId);
  expect(world.server.socket.url).toBe('ws://localhost:3000/_api/ws');
});
