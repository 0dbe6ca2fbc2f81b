/** A value of a request that the server rejected. */
export interface Fault {
  /** Where it is: `$.args.format` in the body, `query.limit` in the query string. */
  readonly path: string;
  readonly message: string;
}

/** What an error carries besides its code and message. */
export interface ErrorDetails {
  readonly status?: number;
  readonly faults?: readonly Fault[];
  readonly retryAfter?: number;
  readonly cause?: unknown;
}

/**
 * Every error of this package.
 *
 * `code` is stable: branch on it. It is a code of the server, such as `not_found`, `invalid` or
 * `unauthenticated`, or one of the client: `network`, `unexpected_response`, `token`, `start`,
 * `cancel`, `no_job`, `stopped`, `job_failed`, `job_cancelled`.
 */
export class ForgeError extends Error {
  declare readonly code: string;
  /** The status of the HTTP response; 0 without one. */
  declare readonly status: number;
  /** With code `invalid`: each value that the server rejected. */
  declare readonly faults: readonly Fault[];
  /** Seconds to wait before the next request, as the server asked; 0 if it did not. */
  declare readonly retryAfter: number;

  constructor(code: string, message: string, details?: ErrorDetails) {
    super(message);
    Object.assign(
      this,
      { name: 'ForgeError', code, status: 0, faults: [], retryAfter: 0 },
      details,
    );
  }
}

/** Return an error as a ForgeError: with this code, unless it is one already. */
export function asForgeError(cause: unknown, code: string, status = 0, context = ''): ForgeError {
  if (cause instanceof ForgeError) return cause;
  const reason = (cause as Error | undefined)?.message ?? cause;
  return new ForgeError(code, `${context}${reason}`, { status, cause });
}
