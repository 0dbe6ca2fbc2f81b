// Compiled with the types of tests/cli/apps/hostile.py. Each line below @ts-expect-error must fail.
import {
  type Array,
  create3dRenderJob,
  createAnyDictJob,
  createBillingExportUsersJob,
  createGröße日本語XJob,
  createNoInputJob,
  createUntypedJob,
  type Options,
  type Promise,
  type RecordInput,
  type TreeInput,
} from './forge';
import { useBillingExportUsersJob, useNoInputJob } from './forge/react';

// Fields with defaults are optional in inputs.
export const record: RecordInput = { class: 'a', 'first-name': 'b' };
export const whole: RecordInput = { ...record, '1st': 2, __proto__: null, new: true, größe: 1.5 };
// @ts-expect-error: a field is missing
export const partial: RecordInput = { class: 'a' };
// @ts-expect-error: a type is wrong
export const wrong: RecordInput = { class: 1, 'first-name': 'b' };
// @ts-expect-error: an optional field is left out, not undefined
export const undef: RecordInput = { class: 'a', 'first-name': 'b', '1st': undefined };
// @ts-expect-error: there is no such field
export const extra: RecordInput = { class: 'a', 'first-name': 'b', other: 1 };

export const nested: Array = {
  items: [record, null, { items: [], grid: [], pair: [null, record], rest: [] }],
  grid: [[1, 'a'], []],
  pair: [1, record],
  rest: [1, 2, 3],
};
export const tree: TreeInput = { a: 1, b: { c: 2, d: {} } };
// @ts-expect-error: leaves are numbers
export const badTree: TreeInput = { a: { b: 'c' } };
export const options: Options = { depth: 1, colour: 'red' };
// @ts-expect-error: no colour of the enum
export const badOptions: Options = { depth: 1, colour: 'green' };
export const open: Promise = { then: null, values: {}, anything: 1 };

export async function start() {
  const billing = createBillingExportUsersJob();
  const id: string = await billing.start(record, { priority: 'high' });
  // @ts-expect-error: the input is required
  await billing.start();
  // @ts-expect-error: no such priority
  await billing.start(record, { priority: 'urgent' });
  await createNoInputJob().start();
  await createUntypedJob().start({ any: ['thing'] });
  await createAnyDictJob().start({ any: 'thing' });
  // @ts-expect-error: no dict
  await createAnyDictJob().start('text');
  // The discriminator is required, although it has a default.
  await createGröße日本語XJob().start({ kind: 'cat', lives: 3 });
  // @ts-expect-error: Forge cannot tell which one it is
  await createGröße日本語XJob().start({ lives: 3 });
  return id;
}

export async function outputs() {
  const page = await createBillingExportUsersJob().done();
  // Fields with defaults are present in outputs.
  const numbers: number[] = page.items.map((item) => item['1st']);
  const next: string | undefined = page.next?.items[0]?.class;
  const nothing: null = await createNoInputJob().done();
  const { pet, counts, price, literal } = await create3dRenderJob().done();
  const lives: number | null = pet.kind === 'cat' ? pet.lives : null;
  const red: number | undefined = counts.red;
  const exact: string = price;
  const one: 1 | -2 | 'a' | true | null | '\'"`' = literal;
  return { numbers, next, nothing, lives, red, exact, one };
}

export function followed() {
  return createBillingExportUsersJob().subscribe((job) => {
    if (job === null) return;
    const percent: number | null = job.progress_percent;
    // @ts-expect-error: without the status, the output is not known
    const early = job.output.items;
    if (job.status === 'completed') return [percent, early, job.output.items];
    if (job.status === 'failed') return [job.last_error, job.dead_lettered];
    // @ts-expect-error: a dead letter has failed
    return job.status === 'dead_letter';
  });
}

export function Component() {
  const { job, start: startNothing } = useNoInputJob();
  const { job: billing } = useBillingExportUsersJob();
  const output: null | undefined = job?.status === 'completed' ? job.output : undefined;
  void startNothing();
  return [output, billing?.status === 'completed' && billing.output.items];
}
