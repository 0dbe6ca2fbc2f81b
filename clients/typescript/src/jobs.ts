import type { LiveJob } from './api.js';
import type { Token } from './token.js';

type JobFields = Omit<LiveJob, 'status' | 'output'>;

/** A job that is not final yet. */
export interface ActiveJob extends JobFields {
  readonly status: 'pending' | 'claimed' | 'running' | 'retry';
  readonly output: null;
}

export interface CompletedJob<Output> extends JobFields {
  readonly status: 'completed';
  readonly output: Output;
}

export interface FailedJob extends JobFields {
  readonly status: 'failed';
  readonly output: null;
  /** Whether the job waits for review as a dead letter. */
  readonly dead_lettered: boolean;
}

export interface CancelledJob extends JobFields {
  readonly status: 'cancelled';
  readonly output: null;
}

/** The state of a job; a comparison of `status` narrows the other fields. */
export type TrackedJob<Output = unknown> =
  | ActiveJob
  | CompletedJob<Output>
  | FailedJob
  | CancelledJob;

/** Return the state of a job, in which a dead letter is a failure. */
export function trackedJob<Output>(job: LiveJob): TrackedJob<Output> {
  const isDeadLetter = job.status === 'dead_letter';
  const isFailed = isDeadLetter || job.status === 'failed';
  const shown = isFailed ? { ...job, status: 'failed', dead_lettered: isDeadLetter } : job;
  return shown as TrackedJob<Output>;
}

/** Options of a dispatch. */
export interface StartOptions {
  readonly priority?: 'critical' | 'high' | 'normal' | 'low' | 'background' | undefined;
  /** The earliest start. */
  readonly scheduledAt?: Date | string | undefined;
  /** The time until the earliest start, such as `30s`, `5m` or `2h`. */
  readonly delay?: string | undefined;
  /** A second dispatch with the same key returns the first job. */
  readonly idempotencyKey?: string | undefined;
  readonly tenantId?: number | undefined;
  readonly correlationId?: string | undefined;
  readonly payloadVersion?: string | undefined;
  readonly queue?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  /** The job fails if it has not started by then. */
  readonly expiresAt?: Date | string | undefined;
}

/** A dispatched job, and what gives access to it. */
export interface Started {
  readonly job_id: string;
  readonly watch_token?: Token | undefined;
}
