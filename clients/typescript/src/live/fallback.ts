import type { LiveJob, LiveProblem } from '../api.js';
import type { ForgeError } from '../errors.js';
import { backoff } from '../http.js';
import type { Channel } from './channel.js';
import { readEvents } from './event_stream.js';
import type { ConnectionState, FollowedJob } from './job.js';
import type { FallbackEvents } from './keeper.js';

/** Follows the jobs of a channel without a socket: by an event stream, or by polling. */
export interface Fallback {
  /** Request the state of every job now. */
  poll(): void;
  stop(): void;
}

/** Over HTTP/1.1, all tabs of a browser share six connections to a server. */
const MAX_STREAMED_JOBS = 1;
const MAX_POLLS_AT_ONCE = 4;
/** Statuses of errors that a repeated request meets again. */
const LASTING = [401, 403, 404, 422];

// Milliseconds.
const POLL_INTERVAL = 2000;
const POLL_TIMEOUT = 10_000;
/** The server sends something every 15 seconds. */
const STREAM_TIMEOUT = 35_000;
/** How long to poll before the next stream, after one failed. */
const STREAM_PAUSE = 60_000;

export function startFallback(channel: Channel, keeper: FallbackEvents): Fallback {
  const { http, jobs } = channel;
  // Jobs whose stream brings updates.
  const streamed = new Set<FollowedJob>();
  let isStopped = false;
  let isPolling = false;
  let isOverdue = false;
  let failures = 0;
  let streamsAfter = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** Open a stream if that may work, and poll what is not streamed; then do it again. */
  async function round(isForced: boolean): Promise<void> {
    clearTimeout(timer);
    if (isStopped) return;
    isOverdue = isPolling;
    if (isPolling) return;
    isPolling = true;
    for (const job of jobs.values()) {
      if (jobs.size > MAX_STREAMED_JOBS) job.stream?.abort();
      else if (!job.stream && Date.now() >= streamsAfter) void stream(job);
    }
    const delay = await pollAll([...jobs.values()].filter((job) => isForced || !streamed.has(job)));
    isPolling = false;
    if (!isStopped) timer = setTimeout(round, isOverdue ? 0 : delay, isOverdue);
  }

  /** Poll jobs, unless one fails; return the milliseconds until the next round. */
  async function pollAll(queue: FollowedJob[]): Promise<number> {
    const isNeeded = queue.length > 0;
    let failure: unknown;
    async function pollNext(): Promise<void> {
      for (let job = queue.shift(); job && !failure && !isStopped; job = queue.shift()) {
        try {
          await pollOne(job);
        } catch (cause) {
          failure = cause;
        }
      }
    }
    await Promise.all(Array.from({ length: MAX_POLLS_AT_ONCE }, pollNext));
    if (failure) {
      failures++;
      setState('offline');
      const { retryAfter = 0 } = failure as Partial<ForgeError>;
      return Math.max(POLL_INTERVAL, backoff(failures), retryAfter * 1000);
    }
    if (isNeeded && failures) void channel.open();
    if (isNeeded) failures = 0;
    return POLL_INTERVAL * (0.75 + Math.random() / 2);
  }

  async function pollOne(job: FollowedJob): Promise<void> {
    try {
      const path = await pathOf(job, 'live');
      const signal = AbortSignal.timeout(POLL_TIMEOUT);
      const update = await http.request<LiveJob>('GET', path, { signal });
      if (!streamed.has(job)) setState('polling');
      deliver(update);
    } catch (cause) {
      const error = cause as ForgeError;
      if (LASTING.includes(error.status)) keeper.handle(job, error);
      // 500: this job cannot be read, but others can.
      else if (error.status !== 500) throw error;
    }
  }

  async function stream(job: FollowedJob): Promise<void> {
    const abort = new AbortController();
    job.stream = abort;
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    function watch(): void {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), STREAM_TIMEOUT);
    }
    try {
      watch();
      const path = await pathOf(job, 'events');
      const response = await http.send('GET', path, abort.signal);
      if (!response.ok || !response.body) throw new TypeError('no stream of events');
      for await (const { name, data } of readEvents(response.body, watch)) {
        if (name === 'job') {
          streamed.add(job);
          setState('live');
          deliver(http.json.parse(data) as LiveJob);
        } else if (name === 'problem') {
          const { code, message } = http.json.parse(data) as LiveProblem;
          keeper.handle(job, { code, message });
        }
      }
    } catch {
      // The next poll finds out why.
      if (jobs.get(job.id) === job) streamsAfter = Date.now() + STREAM_PAUSE;
    } finally {
      clearTimeout(watchdog);
      streamed.delete(job);
      job.stream = undefined;
    }
  }

  async function pathOf(job: FollowedJob, resource: string): Promise<string> {
    const token = await job.watchToken?.get();
    const query = token ? `?watch_token=${encodeURIComponent(token)}` : '';
    return `/_api/jobs/${encodeURIComponent(job.id)}/${resource}${query}`;
  }

  function deliver(update: LiveJob): void {
    keeper.updated(update.id);
    channel.deliver(update);
  }

  function setState(state: ConnectionState): void {
    if (!isStopped) channel.setState(state);
  }

  void round(false);
  return {
    poll: () => void round(true),
    stop() {
      isStopped = true;
      clearTimeout(timer);
      for (const job of jobs.values()) job.stream?.abort();
    },
  };
}
