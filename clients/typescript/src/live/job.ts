import type { LiveJob } from '../api.js';
import type { ForgeError } from '../errors.js';
import type { TokenSource } from '../token.js';

/**
 * How the updates of a job arrive. `idle`: none are wanted. `connecting`. `live`: the server pushes
 * them. `polling`: they are requested every few seconds. `offline`: the server is out of reach.
 */
export type ConnectionState = 'idle' | 'connecting' | 'live' | 'polling' | 'offline';

/** Receives what becomes known of a job. */
export interface Follower {
  /** The state of the job; after the final one, the follower ends the following. */
  onJob(job: LiveJob, isFinal: boolean): void;
  onState(state: ConnectionState): void;
  /** The job is no longer followed. */
  onError(error: ForgeError): void;
}

/** A job with at least one follower. */
export interface FollowedJob {
  readonly id: string;
  readonly followers: Set<Follower>;
  /** Without one, the bearer token gives access. */
  watchToken?: TokenSource;
  latest?: LiveJob;
  /** Ends its event stream. */
  stream?: AbortController | undefined;
}
