import { type Connection, configured } from './connection.js';
import { dispatch } from './dispatch.js';
import { asForgeError, ForgeError } from './errors.js';
import { type Started, type StartOptions, type TrackedJob, trackedJob } from './jobs.js';
import type { ConnectionState } from './live/job.js';
import { type Readable, writable } from './store.js';
import type { Token } from './token.js';

export interface TrackerOptions<Input = unknown> {
  /** Dispatches through your own backend: return what Forge's dispatch route answered. */
  readonly start?: ((input: Input, options: StartOptions) => Promise<Started>) | undefined;
  /** Cancels through your own backend. */
  readonly cancel?: ((jobId: string) => Promise<unknown>) | undefined;
  /** Default: a client with the options of `configure`. */
  readonly client?: { readonly connection: Connection } | undefined;
}

type Optional<Input> = [input?: Input, options?: StartOptions];

/** The arguments of `start`; the input may be omitted if all of it is optional. */
export type StartArguments<Input> = undefined extends Input
  ? Optional<Input>
  : Record<never, never> extends Input
    ? Optional<Input>
    : [input: Input, options?: StartOptions];

/** Starts a job, or attaches to one, and follows it; a Svelte store of its state. */
export interface JobTracker<Input = unknown, Output = unknown>
  extends Readable<TrackedJob<Output> | null> {
  /** Dispatch a job and follow it; return its id. */
  start(...args: StartArguments<Input>): Promise<string>;
  /** Follow a dispatched job; a page without a bearer token needs its watch token. */
  attach(jobId: string, token?: Token): void;
  /** Request the cancellation of the job. */
  cancel(): Promise<void>;
  /** Return the output when the job completes; reject when it fails or is cancelled. */
  done(): Promise<Output>;
  /** End the updates; the job continues. */
  cleanup(): void;
  /** Continue the updates that `cleanup` ended. */
  resume(): void;
  /** How updates arrive. */
  readonly connection: Readable<ConnectionState>;
  /** Why the job could not be started, followed or cancelled. */
  readonly error: Readable<ForgeError | null>;
}

/** One call of `start` or `attach`, and what comes of it. */
interface Run<Output> {
  /** The connection on which the job is dispatched, followed and cancelled. */
  server?: Connection;
  jobId?: string | Promise<string>;
  /** Follow its job; absent while that is unknown. */
  follow?: () => void;
  /** Whether there is nothing more to follow. */
  isEnded?: boolean;
  outcome?: Promise<Output>;
  resolve?(output: Output): void;
  reject?(error: ForgeError): void;
}

export function createJobTracker<Input = unknown, Output = unknown>(
  jobType: string,
  options: TrackerOptions<Input> = {},
  rules: { readonly keyed?: boolean } = {},
): JobTracker<Input, Output> {
  const job = writable<TrackedJob<Output> | null>(null);
  const connection = writable<ConnectionState>('idle');
  const error = writable<ForgeError | null>(null);
  let run = withOutcome<Output>({});
  let isStopped = false;
  let unfollow: (() => void) | undefined;

  function start(...[input, given = {}]: StartArguments<Input>): Promise<string> {
    const mine = begin();
    const { idempotencyKey = rules.keyed ? undefined : randomKey() } = given;
    const jobId = dispatchJob(mine, input as Input, { ...given, idempotencyKey });
    mine.jobId = jobId;
    return jobId;
  }

  async function dispatchJob(
    mine: Run<Output>,
    input: Input,
    startOptions: StartOptions,
  ): Promise<string> {
    const server = mine.server as Connection;
    try {
      const { job_id, watch_token } = await (options.start
        ? options.start(input, startOptions)
        : dispatch(server, jobType, input, startOptions, true));
      // A bearer token outlasts a watch token.
      follow(mine, job_id, options.start || !server.hasToken ? watch_token : undefined);
      return job_id;
    } catch (cause) {
      throw fail(mine, cause);
    }
  }

  function attach(jobId: string, token?: Token): void {
    const mine = begin();
    mine.jobId = jobId;
    follow(mine, jobId, token);
  }

  function begin(): Run<Output> {
    // What `done` returned before the first start remains valid.
    if (run.jobId || isStopped) {
      release();
      run = withOutcome({});
    }
    run.server = options.client?.connection ?? configured();
    isStopped = false;
    job.set(null);
    error.set(null);
    return run;
  }

  function follow(mine: Run<Output>, jobId: string, token: Token | undefined): void {
    mine.follow = () => {
      if (mine !== run || isStopped || mine.isEnded) return;
      const end = (mine.server as Connection).follow(jobId, token, {
        onState: connection.set,
        onJob(update, isFinal) {
          const next = trackedJob<Output>(update);
          if (isFinal) {
            const { status, last_error } = next;
            mine.isEnded = true;
            // The first of these counts.
            if (status === 'completed') mine.resolve?.(next.output);
            release(new ForgeError(`job_${status}`, last_error ?? `The job is ${status}.`));
          }
          job.set(next);
        },
        onError: (failure) => fail(mine, failure),
      });
      // A subscriber may have called cleanup or start meanwhile.
      if (mine === run && !isStopped) unfollow = end;
      else end();
    };
    mine.follow();
  }

  async function cancel(): Promise<void> {
    const mine = run;
    try {
      const jobId = await mine.jobId;
      if (!jobId) throw new ForgeError('no_job', 'No job to cancel: call start or attach first.');
      if (options.cancel) await options.cancel(jobId);
      else await cancelJob(mine.server as Connection, jobId);
    } catch (cause) {
      const failure = asForgeError(cause, 'cancel');
      if (mine === run && !isStopped) error.set(failure);
      throw failure;
    }
  }

  function cleanup(): void {
    isStopped = true;
    release();
  }

  function resume(): void {
    if (!isStopped) return;
    isStopped = false;
    if (!run.isEnded) withOutcome(run);
    run.follow?.();
  }

  function fail(mine: Run<Output>, cause: unknown): ForgeError {
    const failure = asForgeError(cause, 'start');
    mine.isEnded = true;
    if (mine === run) {
      release(failure);
      if (!isStopped) error.set(failure);
    }
    return failure;
  }

  function release(reason = new ForgeError('stopped', 'The job is no longer followed.')): void {
    run.reject?.(reason);
    unfollow?.();
    unfollow = undefined;
    connection.set('idle');
  }

  const done = (): Promise<Output> => run.outcome as Promise<Output>;
  return { ...job, start, attach, cancel, done, cleanup, resume, connection, error };
}

function withOutcome<Output>(run: Run<Output>): Run<Output> {
  run.outcome = new Promise((resolve, reject) => Object.assign(run, { resolve, reject }));
  // Without a call of `done`, nothing handles it.
  run.outcome.catch(() => {});
  return run;
}

/** Return a key that makes a retried dispatch return the first job. */
function randomKey(): string {
  // randomUUID is missing on pages that were not loaded over HTTPS.
  return crypto.getRandomValues(new Uint32Array(4)).join('-');
}

async function cancelJob(server: Connection, jobId: string): Promise<void> {
  if (!server.hasToken) {
    const message = 'A watch token cannot cancel: pass `cancel` to the tracker.';
    throw new ForgeError('unauthenticated', message);
  }
  await server.request('POST', `/_api/jobs/${encodeURIComponent(jobId)}/cancel`, {
    repeatable: true,
  });
}
