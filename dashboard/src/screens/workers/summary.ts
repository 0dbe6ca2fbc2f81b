/** Who does the work, in one sentence. */
import type { WorkerOut } from '../../api/schema';
import { formatCount, plural } from '../../format/numbers';

export function summaryOf(workers: readonly WorkerOut[]): string {
  const of = (state: WorkerOut['state']) => workers.filter((worker) => worker.state === state);
  const alive = of('alive');
  const slots = alive.reduce((sum, worker) => sum + worker.max_concurrent, 0);
  const taken = alive.reduce((sum, worker) => sum + worker.running, 0);
  const rest = (['drained', 'draining', 'dead'] as const)
    .map((state) => ({ state, count: of(state).length }))
    .filter(({ count }) => count)
    .map(({ state, count }) => `${count} ${state}`);
  const first = alive.length
    ? `${plural(alive.length, 'worker')} ${alive.length === 1 ? 'claims' : 'claim'} jobs, ${formatCount(taken)} of ${plural(slots, 'slot')} in use.`
    : 'No worker claims jobs: everything waits.';
  return rest.length ? `${first} ${rest.join(', ')}.` : first;
}
