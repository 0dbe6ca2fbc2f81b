/** What waits, who serves it and what is paused, added up from what the server lists. */
import type { BacklogItemOut, PauseOut, WorkerOut } from '../../api/schema';
import type { Count } from '../../format/numbers';

/** What waits and runs of something. */
export interface Work {
  readonly ready: Count;
  readonly oldestSeconds: number | null;
  readonly running: number;
}

export const NO_WORK: Work = {
  ready: { count: 0, precision: 'exact' },
  oldestSeconds: null,
  running: 0,
};

/** Add up what waits and runs. */
export function workOf(items: readonly BacklogItemOut[]): Work {
  return items.reduce<Work>(
    (sum, item) => ({
      ready: {
        count: Number(sum.ready.count) + Number(item.ready.count),
        precision: item.ready.precision === 'exact' ? sum.ready.precision : item.ready.precision,
      },
      oldestSeconds:
        item.oldest_seconds === null
          ? sum.oldestSeconds
          : Math.max(item.oldest_seconds, sum.oldestSeconds ?? 0),
      running: sum.running + item.running,
    }),
    NO_WORK,
  );
}

/** Return the workers that would claim jobs of a type, in a queue, with a capability. */
export function serversOf(
  workers: readonly WorkerOut[],
  wanted: { type?: string; queue?: string; capability?: string | null },
): WorkerOut[] {
  const { type, queue, capability } = wanted;
  return workers.filter(
    ({ state, job_types, queues, capabilities }) =>
      state === 'alive' &&
      (type === undefined || job_types.includes(type)) &&
      (queue === undefined || queues === null || queues.includes(queue)) &&
      (capability === undefined || capability === null || capabilities.includes(capability)),
  );
}

/** Return the pauses that hold back all jobs of a type in a queue; undefined means any. */
export function pausesOf(
  pauses: readonly PauseOut[],
  type: string | undefined,
  queue: string | undefined,
): PauseOut[] {
  return pauses.filter(
    (pause) =>
      (pause.type === null || pause.type === type) &&
      (pause.queue === null || pause.queue === queue),
  );
}
