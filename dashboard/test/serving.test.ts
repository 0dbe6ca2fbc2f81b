import { expect, test } from 'vitest';
import type { BacklogItemOut, JobTypeOut, PauseOut, WorkerOut } from '../src/api/schema';
import { pausesOf, serversOf, workOf } from '../src/screens/serving/figures';
import { queueRows, sorted, typeRows } from '../src/screens/types/rows';

function item(job_type: string, count: number, more: Partial<BacklogItemOut> = {}): BacklogItemOut {
  return {
    job_type,
    queue: 'default',
    worker_capability: null,
    ready: { count, precision: 'exact' },
    oldest_seconds: count || null,
    running: 1,
    ...more,
  };
}

const worker = (more: Partial<WorkerOut>): WorkerOut =>
  ({
    state: 'alive',
    job_types: ['export'],
    queues: null,
    capabilities: [],
    ...more,
  }) as WorkerOut;
const pause = (type: string | null, queue: string | null): PauseOut =>
  ({ type, queue }) as PauseOut;
const type = (name: string, queue = 'default'): JobTypeOut =>
  ({ name, queue, worker_capability: null }) as JobTypeOut;

test('what waits is added up with the lowest precision and the highest age', () => {
  const more: BacklogItemOut = item('b', 1000, { ready: { count: 1000, precision: 'at_least' } });

  expect(workOf([item('a', 5), more, item('c', 0)])).toEqual({
    ready: { count: 1005, precision: 'at_least' },
    oldestSeconds: 1000,
    running: 3,
  });
});

test.each([
  ['another type', { job_types: ['mail'] }, 0],
  ['every queue', {}, 1],
  ['another queue', { queues: ['files'] }, 0],
  ['the queue', { queues: ['default'] }, 1],
  ['drained', { state: 'drained' as const }, 0],
])('a worker with %s serves or does not', (_, more, count) => {
  expect(serversOf([worker(more)], { type: 'export', queue: 'default' })).toHaveLength(count);
});

test('a worker without the capability does not serve a type that needs it', () => {
  const wanted = { type: 'export', capability: 'gpu' };

  expect(serversOf([worker({})], wanted)).toHaveLength(0);
  expect(serversOf([worker({ capabilities: ['gpu'] })], wanted)).toHaveLength(1);
});

test('a pause of a type in another queue does not hold back the type', () => {
  const pauses = [pause('export', null), pause(null, 'default'), pause('export', 'files')];

  expect(pausesOf(pauses, 'export', 'default')).toEqual(pauses.slice(0, 2));
  expect(pausesOf(pauses, 'export', 'files')).toEqual([pauses[0], pauses[2]]);
});

test('rows have what is registered, what waits and what ended, without built-in jobs', () => {
  const serving = {
    statistics: undefined,
    backlog: [item('old', 3, { queue: 'files' }), item('forge.cancel', 1, { queue: 'forge' })],
    workers: [worker({})],
    pauses: [],
  };
  const types = [type('export'), type('mail', 'mails')];

  const rows = typeRows(types, serving);

  expect(rows.map(({ name, servers }) => [name, servers])).toEqual([
    ['export', 1],
    ['mail', 0],
    ['old', 0],
  ]);
  expect(sorted(rows, 'waiting')[0]?.name).toBe('old');
  expect(queueRows(types, serving).map(({ name }) => name)).toEqual(['default', 'mails', 'files']);
});
