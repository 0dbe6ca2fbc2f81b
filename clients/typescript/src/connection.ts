import { type ClientOptions, createHttp, type RequestOptions } from './http.js';
import { type Channel, MAX_JOBS, openChannel } from './live/channel.js';
import type { Follower } from './live/job.js';
import type { Token } from './token.js';

/** A server as one caller uses it: requests, and the jobs that are followed. */
export interface Connection {
  /** Whether requests carry a bearer token. */
  readonly hasToken: boolean;
  /** Send a request, retried while that can help; return the parsed response. */
  request<T>(method: string, path: string, options?: RequestOptions): Promise<T>;
  /** Follow a job until it is final; return a function that ends that. */
  follow(jobId: string, token: Token | undefined, follower: Follower): () => void;
}

export function connect(options: ClientOptions = {}): Connection {
  const url = addressOf(options);
  const http = createHttp(url, options);
  const channels: Channel[] = [];

  return {
    hasToken: !!http.bearer,
    request: http.request,
    follow(jobId, token, follower) {
      let channel = channels.find(({ jobs }) => jobs.has(jobId) || jobs.size < MAX_JOBS);
      if (!channel) {
        channel = openChannel(http, socketMaker(options));
        channels.push(channel);
      }
      return channel.follow(jobId, token, follower);
    },
  };
}

function addressOf({ url = '' }: ClientOptions): string {
  return url.replace(/\/+$/, '');
}

/** Return a function that opens a socket to the server. */
export function socketMaker(options: ClientOptions): () => WebSocket {
  const { href } = new URL(`${addressOf(options)}/_api/ws`, globalThis.location?.href);
  return () => new (options.WebSocket ?? WebSocket)(href.replace('http', 'ws'));
}

let defaultOptions: ClientOptions = {};
let defaultConnection: Connection | undefined;

/** Set the server and the token of trackers that name no client; those that run keep theirs. */
export function configure(options: ClientOptions): void {
  defaultOptions = options;
  defaultConnection = undefined;
}

/** Return the connection of trackers that name no client. */
export function configured(): Connection {
  defaultConnection ??= connect(defaultOptions);
  return defaultConnection;
}
