import type { DispatchOut } from './api.js';
import type { Connection } from './connection.js';
import type { StartOptions } from './jobs.js';

/** Dispatch a job; `repeatable` means that a repeated request returns the same job. */
export function dispatch(
  server: Connection,
  jobType: string,
  input: unknown,
  options: StartOptions,
  repeatable: boolean,
  signal?: AbortSignal,
): Promise<DispatchOut> {
  const body: Record<string, unknown> = { args: input };
  for (const [name, value] of Object.entries(options)) {
    body[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] = value;
  }
  const path = `/_api/jobs/${encodeURIComponent(jobType)}/dispatch`;
  return server.request('POST', path, { body, repeatable, signal });
}
