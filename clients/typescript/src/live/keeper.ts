import type { ServerMessage } from '../api.js';
import { ForgeError } from '../errors.js';
import { backoff } from '../http.js';
import type { TokenSource } from '../token.js';
import type { Channel } from './channel.js';
import { type Fallback, startFallback } from './fallback.js';
import type { FollowedJob } from './job.js';

/** Keeps the updates of a channel coming: retries, heartbeats, wake-ups, and a fallback. */
export interface Keeper {
  /** The channel opens a socket, or has one. */
  opening(): void;
  heard(message: ServerMessage): void;
  /** The socket was closed with this code, given up, or could not be opened. */
  lost(code: number | undefined): void;
  /** The server or a token function reported a problem with a job. */
  handle(job: FollowedJob, problem: Problem): void;
  /** A job is followed. */
  followed(): void;
  /** No job is followed any longer. */
  emptied(): void;
}

/** Why a job cannot be followed. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly status?: number;
}

/** What a fallback reports. */
export interface FallbackEvents {
  updated(jobId: string): void;
  handle(job: FollowedJob, problem: Problem): void;
}

const EVENTS = ['online', 'offline', 'visibilitychange', 'pageshow'];
/** Codes of problems with a job that may pass. */
const TRANSIENT = ['unavailable', 'internal', 'too_many', 'token'];
const UNAUTHENTICATED = 4401;
const MAX_FAILURES = 2;

// Milliseconds.
const TICK = 2000;
/** After a longer pause between two ticks, timers were frozen or throttled. */
const FROZEN = 10_000;
const HEARTBEAT = 20_000;
const ANSWER_TIMEOUT = 10_000;
/** With heartbeats, a socket is never silent for longer. */
const MAX_SILENCE = 90_000;
const LINGER = 3000;
const FIRST_RETRY = 1000;
const SUBSCRIBE_RETRY = 5000;

export function keep(channel: Channel): Keeper {
  // Failed attempts since the last update; one more if there was none yet.
  let failures = 1;
  // Whether the bearer token was replaced since the last update.
  let isRenewed = false;
  // Jobs whose watch token is being replaced, or was replaced since their last update.
  const renewals = new WeakMap<FollowedJob, 'asked' | 'used'>();
  let isLinked = false;
  // Milliseconds without a message, and whether one is due.
  let silence = 0;
  let isWaiting = false;
  let tickedAt = Date.now();
  let retry: ReturnType<typeof setTimeout> | undefined;
  let linger: ReturnType<typeof setTimeout> | undefined;
  let fallback: Fallback | undefined;
  const ticker = setInterval(tick, TICK);
  for (const type of EVENTS) globalThis.addEventListener?.(type, wake);

  function tick(): void {
    const now = Date.now();
    // A clock that is set back counts as a pause, too.
    const pause = Math.abs(now - tickedAt);
    tickedAt = now;
    silence += pause;
    if (isLinked) {
      if (silence >= (isWaiting ? ANSWER_TIMEOUT : MAX_SILENCE)) channel.drop();
      else if (silence >= HEARTBEAT) probe();
    }
    if (pause < FROZEN) return;
    void channel.open();
    fallback?.poll();
  }

  function opening(): void {
    clearTimeout(retry);
    if (isLinked) return;
    isLinked = true;
    expect();
  }

  function expect(): void {
    silence = 0;
    isWaiting = true;
  }

  /** Send a heartbeat: request a state that is known. */
  function probe(): void {
    const [job] = channel.jobs.values();
    if (!job || isWaiting) return;
    expect();
    void channel.subscribe(job);
  }

  function heard(message: ServerMessage): void {
    silence = 0;
    isWaiting = false;
    if (message.type === 'job') {
      failures = 0;
      isRenewed = false;
      stopFallback();
      updated(message.job.id);
    } else if (message.type === 'error') {
      const job = channel.jobs.get(message.job_id ?? '');
      if (job) handle(job, message);
    }
  }

  function lost(code: number | undefined): void {
    const { bearer } = channel.http;
    isLinked = false;
    if (code === UNAUTHENTICATED && bearer && renew(bearer)) return;
    failures++;
    const delay = failures > MAX_FAILURES ? backoff(failures) : Math.random() * FIRST_RETRY;
    retry = setTimeout(channel.open, delay);
    if (failures >= MAX_FAILURES) fallback ??= startFallback(channel, { handle, updated });
    else if (!fallback) channel.setState('connecting');
  }

  /** Try another bearer token at once, if there is one; otherwise end what needs it. */
  function renew(bearer: TokenSource): boolean {
    isRenewed = !isRenewed && bearer.isRenewable;
    if (isRenewed) {
      void channel.open();
      return true;
    }
    const message = 'The server rejected the token, or it has expired.';
    for (const job of channel.jobs.values()) {
      if (!job.watchToken) end(job, { code: 'unauthenticated', message, status: 401 });
    }
    return false;
  }

  function handle(job: FollowedJob, problem: Problem): void {
    if (channel.jobs.get(job.id) !== job) return;
    const renewal = renewals.get(job);
    if (TRANSIENT.includes(problem.code)) {
      setTimeout(channel.subscribe, SUBSCRIBE_RETRY * (0.5 + Math.random()), job);
    } else if (
      problem.code !== 'unauthenticated' ||
      !job.watchToken?.isRenewable ||
      renewal === 'used'
    ) {
      end(job, problem);
    } else if (!renewal) {
      // Further problems with the old token can arrive while the new one is fetched.
      renewals.set(job, 'asked');
      job.watchToken.forget();
      void channel.subscribe(job).then(() => renewals.set(job, 'used'));
    }
  }

  function end(job: FollowedJob, { code, message, status = 0 }: Problem): void {
    channel.remove(job);
    const error = new ForgeError(code, message, { status });
    for (const follower of job.followers) follower.onError(error);
  }

  function updated(jobId: string): void {
    const job = channel.jobs.get(jobId);
    if (job) renewals.delete(job);
  }

  function wake({ type }: Event): void {
    // Sockets seldom survive a change of networks, and do not report it.
    if (type === 'online' && isLinked) channel.drop();
    else probe();
    void channel.open();
    fallback?.poll();
  }

  function followed(): void {
    clearTimeout(linger);
    if (isLinked && !isWaiting) expect();
    fallback?.poll();
  }

  function emptied(): void {
    linger = setTimeout(stop, LINGER);
  }

  function stopFallback(): void {
    fallback?.stop();
    fallback = undefined;
  }

  function stop(): void {
    clearInterval(ticker);
    clearTimeout(retry);
    for (const type of EVENTS) globalThis.removeEventListener?.(type, wake);
    stopFallback();
    channel.close();
  }

  return { opening, heard, lost, handle, followed, emptied };
}
