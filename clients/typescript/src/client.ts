import type { DispatchOut, JobOut, JobPage, ListFilter, RequestOut, WatchTokenOut } from './api.js';
import { type Connection, connect, socketMaker } from './connection.js';
import { dispatch } from './dispatch.js';
import { type ClientOptions, createHttp } from './http.js';
import type { StartOptions } from './jobs.js';
import type { Lists } from './live/lists.js';

/** Milliseconds until the code of lists is loaded again, after that failed. */
const LOAD_RETRY = 5000;

/** What a single call can be given. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Which jobs `list` returns: the filters of lists, and of a page. */
export interface ListOptions extends CallOptions, Omit<ListFilter, 'since' | 'until'> {
  /** From this creation time on. */
  readonly since?: Date | string | undefined;
  /** Before this creation time. */
  readonly until?: Date | string | undefined;
  /** A text in the input, the last error or the progress message. */
  readonly q?: string | undefined;
  /** The `next_cursor` of the page before. */
  readonly cursor?: string | undefined;
  /** At most 200; default: 50. */
  readonly limit?: number | undefined;
}

/** A server of Forge, as one caller uses it. */
export class ForgeClient {
  /** The requests and the socket that trackers with this client share. */
  readonly connection: Connection;

  readonly #options: ClientOptions;
  #lists: Promise<Lists> | undefined;

  constructor(options: ClientOptions = {}) {
    this.#options = options;
    this.connection = connect(options);
  }

  /** Dispatch a job; with an idempotency key, it is retried when the network fails. */
  dispatch(
    jobType: string,
    input?: unknown,
    { signal, ...options }: StartOptions & CallOptions = {},
  ): Promise<DispatchOut> {
    return dispatch(this.connection, jobType, input, options, !!options.idempotencyKey, signal);
  }

  get(jobId: string, options?: CallOptions): Promise<JobOut> {
    return this.#job('GET', jobId, '', options);
  }

  /** Return a page of jobs, newest first. */
  list({ signal, ...filters }: ListOptions = {}): Promise<JobPage> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filters)) {
      if (value !== undefined && value !== null) {
        query.set(name, value instanceof Date ? value.toISOString() : String(value));
      }
    }
    return this.connection.request('GET', `/_api/jobs?${query}`, { repeatable: true, signal });
  }

  /**
   * Call back soon, and after each change of the newest jobs that match, at most once a second:
   * load the list again then. Return a function that ends this.
   */
  watchList(filter: ListFilter, onChange: () => void): () => void {
    let end: (() => void) | undefined;
    let isEnded = false;
    const begin = async (): Promise<void> => {
      try {
        this.#lists ??= this.#openLists();
        const lists = await this.#lists;
        if (!isEnded) end = lists.watch(filter, onChange);
      } catch {
        this.#lists = undefined;
        if (isEnded) return;
        onChange();
        setTimeout(begin, LOAD_RETRY);
      }
    };
    void begin();
    return () => {
      isEnded = true;
      end?.();
    };
  }

  async #openLists(): Promise<Lists> {
    const { openLists } = await import('./live/lists.js');
    return openLists(createHttp('', this.#options), socketMaker(this.#options));
  }

  /** Request the cancellation of a job. */
  cancel(jobId: string, reason?: string, options?: CallOptions): Promise<RequestOut> {
    return this.#job(
      'POST',
      jobId,
      '/cancel',
      options,
      reason === undefined ? undefined : { reason },
    );
  }

  /** Request that a waiting job becomes due. */
  runNow(jobId: string, options?: CallOptions): Promise<RequestOut> {
    return this.#job('POST', jobId, '/run_now', options);
  }

  /** Request that a job is cancelled, failed or erased, depending on its status. */
  delete(jobId: string, options?: CallOptions): Promise<RequestOut> {
    return this.#job('DELETE', jobId, '', options);
  }

  /** Return a token with which a page can follow this job, and nothing else. */
  watchToken(jobId: string, options?: CallOptions): Promise<WatchTokenOut> {
    return this.#job('POST', jobId, '/watch_token', options);
  }

  /** Call a mutation; it is not retried. */
  callMutation<Output = unknown>(
    name: string,
    input?: unknown,
    options?: CallOptions,
  ): Promise<Output> {
    return this.#call('mutations', name, input, options);
  }

  /** Call an action; it is not retried. */
  callAction<Output = unknown>(
    name: string,
    input?: unknown,
    options?: CallOptions,
  ): Promise<Output> {
    return this.#call('actions', name, input, options);
  }

  #job<T>(
    method: string,
    jobId: string,
    verb: string,
    { signal }: CallOptions = {},
    body?: unknown,
  ): Promise<T> {
    const path = `/_api/jobs/${encodeURIComponent(jobId)}${verb}`;
    return this.connection.request(method, path, { body, repeatable: true, signal });
  }

  #call<T>(kind: string, name: string, input: unknown, { signal }: CallOptions = {}): Promise<T> {
    const path = `/_api/${kind}/${encodeURIComponent(name)}`;
    return this.connection.request('POST', path, { body: input ?? {}, signal });
  }
}
