import type { Problem } from './api.js';
import { asForgeError, ForgeError } from './errors.js';
import { type Token, type TokenSource, tokenSource } from './token.js';

/** Reads and writes JSON. */
export interface JsonCodec {
  parse(text: string): unknown;
  stringify(value: unknown): string | undefined;
}

export interface ClientOptions {
  /** Address of the server, such as `https://forge.example`; default: the page's own origin. */
  readonly url?: string | undefined;
  /** The caller's bearer token; default: none, for pages that only hold watch tokens. */
  readonly token?: Token | undefined;
  readonly fetch?: typeof fetch | undefined;
  readonly WebSocket?: typeof WebSocket | undefined;
  /** Default: `JSON`, which rounds integers beyond 2^53. */
  readonly json?: JsonCodec | undefined;
}

export interface RequestOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Whether sending it twice is harmless, so that it is retried. */
  readonly repeatable?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Requests to one server, with one caller's token. */
export interface Http {
  readonly bearer: TokenSource | undefined;
  readonly json: JsonCodec;
  /** Send a request once, and again with another token if the first was rejected. */
  send(method: string, path: string, signal?: AbortSignal, body?: string): Promise<Response>;
  /** Send a request, retried while that can help; return the parsed response. */
  request<T>(method: string, path: string, options?: RequestOptions): Promise<T>;
}

const MAX_ATTEMPTS = 4;
/** Milliseconds to wait for the response to a request that can be sent again. */
const PATIENCE = 30_000;
/** The longest delay before a retry, in milliseconds. */
const MAX_DELAY = 30_000;
const UNEXPECTED = 'unexpected_response';
/** Proxies answer 502 and 504 while the server restarts. */
const TRANSIENT = [502, 503, 504];

/** Return a random delay in milliseconds; its upper bound doubles with each failure. */
export function backoff(failures: number): number {
  return Math.random() * Math.min(MAX_DELAY, 500 * 2 ** failures);
}

export function createHttp(url: string, options: ClientOptions): Http {
  const { token, json = JSON } = options;
  const bearer = token === undefined ? undefined : tokenSource(token);

  async function send(
    method: string,
    path: string,
    signal?: AbortSignal,
    body?: string,
  ): Promise<Response> {
    for (let isRenewed = false; ; isRenewed = true) {
      const used = bearer?.get();
      const held = await used;
      const headers = {
        ...(held && { Authorization: `Bearer ${held}` }),
        ...(body && { 'Content-Type': 'application/json' }),
      };
      const init = { method, headers, body, signal } as RequestInit;
      const response = await (options.fetch ?? fetch)(url + path, init);
      if (response.status !== 401 || isRenewed || !bearer?.isRenewable) return response;
      bearer.forget(used);
    }
  }

  async function request<T>(
    method: string,
    path: string,
    { body, repeatable, signal }: RequestOptions = {},
  ): Promise<T> {
    const text = json.stringify(body);
    const context = `${method} ${path}: `;
    for (let failures = 1; ; failures++) {
      let error: ForgeError;
      let status = 0;
      try {
        const patience = signal ?? (repeatable ? AbortSignal.timeout(PATIENCE) : signal);
        const response = await send(method, path, patience, text);
        const content = await response.text();
        ({ status } = response);
        const answer = json.parse(content) as T & Problem;
        if (response.ok) return answer;
        const { code = UNEXPECTED, detail = context + status, errors: faults = [] } = answer;
        const retryAfter = Number(response.headers.get('Retry-After')) || 0;
        error = new ForgeError(code, detail, { status, faults, retryAfter });
      } catch (cause) {
        signal?.throwIfAborted();
        // With a status, the response was not JSON: it comes from a proxy or another server.
        error = asForgeError(cause, status ? UNEXPECTED : 'network', status, context);
      }
      const delay = Math.max(backoff(failures), error.retryAfter * 1000);
      const isTransient = error.code === 'network' || TRANSIENT.includes(status);
      if (!repeatable || !isTransient || failures >= MAX_ATTEMPTS || delay > MAX_DELAY) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, delay);
        signal?.addEventListener('abort', resolve);
      });
    }
  }

  return { bearer, json, send, request };
}
