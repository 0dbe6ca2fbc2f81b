/** What waits and runs, who serves it, and what is paused: by job type or by queue. */
import { get } from '../../api/request';
import type {
  BacklogItemOut,
  ItemsBacklogItemOut,
  ItemsPauseOut,
  ItemsWorkerOut,
  PauseOut,
  StatisticsByTypeOut,
  TypeStatisticsOut,
  WorkerOut,
} from '../../api/schema';
import { session } from '../../api/session.svelte';
import { rangeOf } from '../../format/periods';

/** How things are now; what the caller may not see is undefined. */
export interface Serving {
  readonly statistics: readonly TypeStatisticsOut[] | undefined;
  readonly backlog: readonly BacklogItemOut[] | undefined;
  readonly workers: readonly WorkerOut[] | undefined;
  readonly pauses: readonly PauseOut[] | undefined;
}

export interface Wanted {
  readonly type?: string;
  readonly queue?: string;
  readonly group: 'type' | 'queue' | 'all';
  readonly period: string;
}

export async function loadServing(wanted: Wanted, signal: AbortSignal): Promise<Serving> {
  const [figures, workers, pauses] = await Promise.all([
    loadFigures(wanted, signal),
    ifAllowed<ItemsWorkerOut>('/_api/workers', signal),
    ifAllowed<ItemsPauseOut>('/_api/pauses', signal),
  ]);
  return { ...figures, workers: workers?.items, pauses: pauses?.items };
}

/** Load what ended, waits and runs; not who serves it. */
export async function loadFigures(wanted: Wanted, signal: AbortSignal): Promise<Serving> {
  const [statistics, backlog] = await Promise.all([
    loadTotals(wanted, signal),
    ifAllowed<ItemsBacklogItemOut>('/_api/backlog', signal),
  ]);
  return { statistics, backlog: backlog?.items, workers: undefined, pauses: undefined };
}

/** A tenant has statistics of all its types together only. */
export function hasStatistics(): boolean {
  return session.me?.tenant_id === null && session.can('GET /_api/statistics/by_type');
}

/** Load totals; those of a tenant are of all types together. */
export async function loadTotals(
  { type, queue, group, period }: Wanted,
  signal: AbortSignal,
): Promise<readonly TypeStatisticsOut[] | undefined> {
  const isTotal = group === 'all' && session.can('GET /_api/statistics/by_type');
  if (!isTotal && !hasStatistics()) return undefined;
  const query = { ...rangeOf(period, Date.now()), type, queue, group };
  return (await get<StatisticsByTypeOut>('/_api/statistics/by_type', query, signal)).items;
}

function ifAllowed<T>(path: string, signal: AbortSignal): Promise<T> | undefined {
  return session.can(`GET ${path}`) ? get<T>(path, {}, signal) : undefined;
}
