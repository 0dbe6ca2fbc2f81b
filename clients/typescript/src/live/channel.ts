import type { ClientMessage, LiveJob, ServerMessage } from '../api.js';
import type { ForgeError } from '../errors.js';
import type { Http } from '../http.js';
import { type Token, tokenSource } from '../token.js';
import type { ConnectionState, FollowedJob, Follower } from './job.js';
import type { Keeper } from './keeper.js';

/** Follows up to `MAX_JOBS` jobs over one socket, which is open while there are jobs. */
export interface Channel {
  readonly http: Http;
  readonly jobs: ReadonlyMap<string, FollowedJob>;
  follow(jobId: string, token: Token | undefined, follower: Follower): () => void;
  /** Open a socket, unless there is one. */
  open(): Promise<void>;
  /** Give up the socket: the keeper opens another. */
  drop(): void;
  /** Follow a job on the socket; repeated, it requests the current state. */
  subscribe(job: FollowedJob): Promise<void>;
  deliver(update: LiveJob): void;
  close(): void;
  /** Stop following a job. */
  remove(job: FollowedJob): void;
  setState(state: ConnectionState): void;
}

/** The server's limit for one socket. */
export const MAX_JOBS = 1000;
const FINAL = /^(completed|failed|dead_letter|cancelled)$/;

/** Milliseconds until the keeper is loaded again. */
const LOAD_RETRY = 5000;

/** An attempt to connect, and the socket that it opens. */
interface Link {
  socket?: WebSocket;
}

export function openChannel(http: Http, newSocket: () => WebSocket): Channel {
  const jobs = new Map<string, FollowedJob>();
  let state: ConnectionState = 'idle';
  let link: Link | undefined;
  let keeper: Promise<Keeper> | undefined;
  let reload: ReturnType<typeof setTimeout> | undefined;

  function follow(jobId: string, token: Token | undefined, follower: Follower): () => void {
    const known = jobs.get(jobId);
    const job: FollowedJob = known ?? { id: jobId, followers: new Set() };
    // The newest watch token lasts longest; a bearer token lasts longer.
    if (token && (!known || job.watchToken)) job.watchToken = tokenSource(token);
    jobs.set(jobId, job);
    job.followers.add(follower);
    if (state === 'idle') {
      state = 'connecting';
      void open();
    }
    follower.onState(state);
    if (job.latest) follower.onJob(job.latest, false);
    void subscribe(job);
    withKeeper((keeper) => keeper.followed());
    return () => {
      job.followers.delete(follower);
      if (!job.followers.size && jobs.get(jobId) === job) remove(job);
    };
  }

  async function open(): Promise<void> {
    if (!jobs.size) return;
    // Loads it, too, before it is needed: the network may be gone then.
    withKeeper((keeper) => keeper.opening());
    if (link) return;
    const mine: Link = {};
    link = mine;
    try {
      const token = await http.bearer?.get();
      if (link !== mine) return;
      const socket = newSocket();
      mine.socket = socket;
      socket.onopen = () => {
        if (token) send({ type: 'auth', token });
        for (const job of jobs.values()) void subscribe(job);
      };
      socket.onmessage = ({ data }) => {
        const message = http.json.parse(data) as ServerMessage;
        withKeeper((keeper) => keeper.heard(message));
        if (message.type !== 'job') return;
        setState('live');
        deliver(message.job);
      };
      socket.onclose = ({ code }) => link === mine && drop(code);
    } catch {
      if (link === mine) drop();
    }
  }

  function drop(code?: number): void {
    release();
    withKeeper((keeper) => keeper.lost(code));
  }

  function release(): void {
    link?.socket?.close();
    link = undefined;
    // The next attempt asks for the token again: this one may have expired meanwhile.
    http.bearer?.forget();
  }

  function close(): void {
    release();
    keeper = undefined;
    state = 'idle';
  }

  function withKeeper(act: (keeper: Keeper) => void): void {
    keeper ??= import('./keeper.js').then(({ keep }) => keep(channel));
    keeper.then(act, () => {
      keeper = undefined;
      if (!link) setState('offline');
      clearTimeout(reload);
      reload = setTimeout(open, LOAD_RETRY);
    });
  }

  function send(message: ClientMessage): void {
    if (link?.socket?.readyState === 1) link.socket.send(JSON.stringify(message));
  }

  async function subscribe(job: FollowedJob): Promise<void> {
    try {
      const watch_token = (await job.watchToken?.get()) ?? null;
      if (jobs.get(job.id) === job) send({ type: 'subscribe', job_id: job.id, watch_token });
    } catch (cause) {
      withKeeper((keeper) => keeper.handle(job, cause as ForgeError));
    }
  }

  function deliver(update: LiveJob): void {
    const job = jobs.get(update.id);
    // A slow response to a poll can be older than what a socket brought meanwhile.
    if (!job || (job.latest && update.version <= job.latest.version)) return;
    job.latest = update;
    const isFinal = FINAL.test(update.status);
    for (const follower of job.followers) follower.onJob(update, isFinal);
  }

  function remove(job: FollowedJob): void {
    jobs.delete(job.id);
    job.stream?.abort();
    send({ type: 'unsubscribe', job_id: job.id });
    if (!jobs.size) withKeeper((keeper) => keeper.emptied());
  }

  function setState(next: ConnectionState): void {
    if (state === next) return;
    state = next;
    for (const job of jobs.values()) for (const follower of job.followers) follower.onState(next);
  }

  const channel: Channel = {
    http,
    jobs,
    follow,
    open,
    drop,
    close,
    subscribe,
    deliver,
    remove,
    setState,
  };
  return channel;
}
