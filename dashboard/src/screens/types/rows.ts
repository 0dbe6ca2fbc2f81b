/** Rows of the job types and of the queues. */
import type { JobTypeOut, PauseOut, TypeStatisticsOut } from '../../api/schema';
import { pausesOf, serversOf, type Work, workOf } from '../serving/figures';
import type { Serving } from '../serving/serving';

export interface TypeRow {
  readonly name: string;
  /** Undefined: it is not registered any more. */
  readonly type: JobTypeOut | undefined;
  readonly queue: string | undefined;
  readonly statistics: TypeStatisticsOut | undefined;
  readonly work: Work | undefined;
  /** How many workers claim it in its queue. */
  readonly servers: number | undefined;
  readonly pauses: readonly PauseOut[];
}

export interface QueueRow {
  readonly name: string;
  readonly types: readonly string[];
  readonly statistics: TypeStatisticsOut | undefined;
  readonly work: Work | undefined;
  readonly servers: number | undefined;
  readonly pauses: readonly PauseOut[];
}

export function typeRows(types: readonly JobTypeOut[], serving: Serving | undefined): TypeRow[] {
  const { statistics, backlog, workers, pauses } = serving ?? NOTHING;
  const byName = new Map(types.map((type) => [type.name, type]));
  const names = new Set([
    ...byName.keys(),
    ...(statistics ?? []).flatMap(({ job_type }) => job_type ?? []),
    ...(backlog ?? []).map(({ job_type }) => job_type).filter(isOrdinary),
  ]);
  return [...names].map((name) => {
    const type = byName.get(name);
    const queue = type?.queue;
    return {
      name,
      type,
      queue,
      statistics: statistics?.find(({ job_type }) => job_type === name),
      work: backlog && workOf(backlog.filter(({ job_type }) => job_type === name)),
      servers:
        workers &&
        serversOf(workers, {
          type: name,
          ...(queue === undefined ? {} : { queue }),
          ...(type ? { capability: type.worker_capability } : {}),
        }).length,
      pauses: pausesOf(pauses ?? [], name, queue),
    };
  });
}

export function queueRows(types: readonly JobTypeOut[], serving: Serving | undefined): QueueRow[] {
  const { statistics, backlog, workers, pauses } = serving ?? NOTHING;
  const names = new Set([
    ...types.map(({ queue }) => queue),
    ...(statistics ?? []).flatMap(({ queue }) => queue ?? []),
    ...(backlog ?? []).map(({ queue }) => queue),
    ...(workers ?? []).flatMap(({ queues }) => queues ?? []),
    ...(pauses ?? []).flatMap(({ queue }) => queue ?? []),
  ]);
  return [...names]
    .filter((name) => name !== BUILT_IN)
    .map((name) => {
      const waiting = backlog?.filter(({ queue }) => queue === name);
      const own = types.filter(({ queue }) => queue === name).map((type) => type.name);
      return {
        name,
        types: [...new Set([...own, ...(waiting ?? []).map(({ job_type }) => job_type)])].sort(),
        statistics: statistics?.find(({ queue }) => queue === name),
        work: waiting && workOf(waiting),
        servers: workers && serversOf(workers, { queue: name }).length,
        pauses: pausesOf(pauses ?? [], undefined, name),
      };
    });
}

export const SORTS = ['name', 'rate', 'failed', 'wait', 'run', 'waiting'] as const;
export type Sort = (typeof SORTS)[number];

export function sortOf(text: string | undefined): Sort {
  return SORTS.find((sort) => sort === text) ?? 'name';
}

/** Sort by a figure, the highest first, then by name. */
export function sorted<Row extends TypeRow | QueueRow>(rows: readonly Row[], sort: Sort): Row[] {
  return [...rows].sort(
    (one, other) =>
      figureOf(other, sort) - figureOf(one, sort) || one.name.localeCompare(other.name, 'en'),
  );
}

/** The queue and prefix of the types that carry out requests. */
const BUILT_IN = 'forge';
const NOTHING: Serving = {
  statistics: undefined,
  backlog: undefined,
  workers: undefined,
  pauses: undefined,
};

function isOrdinary(name: string): boolean {
  return !name.startsWith(`${BUILT_IN}.`);
}

function figureOf({ statistics, work }: TypeRow | QueueRow, sort: Sort): number {
  switch (sort) {
    case 'name':
      return 0;
    case 'rate':
      return statistics?.per_minute ?? -1;
    case 'failed':
      return statistics?.failed_percent ?? -1;
    case 'wait':
      return statistics?.wait_ms.p95 ?? -1;
    case 'run':
      return statistics?.run_ms.p95 ?? -1;
    case 'waiting':
      return Number(work?.ready.count ?? -1);
  }
}
