/** Requests of the signed-in caller. */
import type { ForgeError } from '@forge-jobs/client';
import { asForgeError } from '@forge-jobs/client/errors';
import { connection } from './connection.svelte';
import { send, session } from './session.svelte';

export type QueryValue = string | number | bigint | boolean | null | undefined;
export type Query = Readonly<Record<string, QueryValue>>;

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return call<T>('GET', withQuery(path, query), undefined, signal);
}

export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  try {
    const answer = await send<T>(session.client, method, path, body, signal);
    connection.reached();
    return answer;
  } catch (cause) {
    if (signal?.aborted) throw cause;
    const error = asForgeError(cause, 'network');
    if (error.status === 401) session.expire(error);
    else if (isOutage(error)) connection.lost(error);
    else connection.reached();
    throw error;
  }
}

/** Whether nothing is wrong with the request: it may succeed later. */
export function isOutage(error: ForgeError): boolean {
  return error.code === 'network' || [502, 503, 504].includes(error.status);
}

export function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') parameters.set(name, `${value}`);
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}
