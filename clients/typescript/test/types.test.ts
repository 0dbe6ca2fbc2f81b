// What an application's compiler accepts; `make check` compiles this file.
import { expect, expectTypeOf, test } from 'vitest';
import {
  createJobTracker,
  type ForgeError,
  type JobTracker,
  type TrackedJob,
} from '../src/index.js';

test('start takes the input, and no argument where all of it is optional', () => {
  const required: JobTracker<{ format: string }> = createJobTracker('a');
  const optional: JobTracker<{ format?: string }> = createJobTracker('a');
  const none: JobTracker<void> = createJobTracker('a');
  const anything: JobTracker = createJobTracker('a');

  expectTypeOf(required.start).parameter(0).toEqualTypeOf<{ format: string }>();
  expectTypeOf(optional.start).toBeCallableWith();
  expectTypeOf(none.start).toBeCallableWith();
  expectTypeOf(none.start).toBeCallableWith(undefined, { priority: 'high' });
  expectTypeOf(anything.start).toBeCallableWith();
  // @ts-expect-error: the input is missing
  expectTypeOf(required.start).toBeCallableWith();
  // @ts-expect-error: there is no such priority
  expectTypeOf(none.start).toBeCallableWith(undefined, { priority: 'urgent' });
});

test('the status narrows the job', () => {
  const describe = (job: TrackedJob<{ file: string }>): string => {
    if (job.status === 'completed') return job.output.file;
    if (job.status === 'failed') return `${job.dead_lettered} ${job.last_error}`;
    // @ts-expect-error: only a completed job has an output
    if (job.status === 'running') return job.output.file;
    // @ts-expect-error: a dead letter is failed
    if (job.status === 'dead_letter') return '';
    return `${job.progress_percent}% ${job.progress_message}`;
  };

  expect(describe).toBeTypeOf('function');
});

test('the result of done is the output', () => {
  const tracker: JobTracker<void, { file: string }> = createJobTracker('a');

  expectTypeOf(tracker.done).returns.resolves.toEqualTypeOf<{ file: string }>();
  expectTypeOf(tracker.error.get()).toEqualTypeOf<ForgeError | null>();
});
