/** What can be done with one worker. */
import type { WorkerOut } from '../../api/schema';
import { commandLine } from '../../format/commands';
import type { Action } from '../../ui/action';

const NAMED = 3;

/** Return the action that fits the worker's state; what runs elsewhere says what a drain means. */
export function workerAction(worker: WorkerOut, all: readonly WorkerOut[]): Action | undefined {
  if (worker.state === 'dead') return undefined;
  return worker.drained_at === null ? drain(worker, all) : resume(worker);
}

/** Return the job types that no other worker would claim. */
export function onlyHere(worker: WorkerOut, all: readonly WorkerOut[]): string[] {
  const others = all.filter(({ id, state }) => id !== worker.id && state === 'alive');
  return worker.job_types.filter(
    (type) => !others.some(({ job_types }) => job_types.includes(type)),
  );
}

function drain(worker: WorkerOut, all: readonly WorkerOut[]): Action {
  return {
    route: 'POST /_api/workers/{worker_id}/drain',
    path: `/_api/workers/${worker.id}/drain`,
    label: 'Drain worker…',
    body: (reason) => (reason ? { reason } : {}),
    command: (reason) => commandLine(['forge', 'workers', 'drain', worker.id], { reason }),
    confirm: { effect: drainEffect(worker, all), reason: 'optional', isReversible: true },
    done: () => ({ text: `${worker.hostname} finishes what it runs and claims nothing more.` }),
  };
}

function resume(worker: WorkerOut): Action {
  return {
    route: 'POST /_api/workers/{worker_id}/resume',
    path: `/_api/workers/${worker.id}/resume`,
    label: 'Resume worker',
    body: () => ({}),
    command: () => commandLine(['forge', 'workers', 'resume', worker.id]),
    done: () => ({ text: `${worker.hostname} claims jobs again with its next heartbeat.` }),
  };
}

function drainEffect(worker: WorkerOut, all: readonly WorkerOut[]): string {
  const finishes = worker.running
    ? `The worker finishes what it runs (${worker.running}) and claims nothing more until it is resumed.`
    : 'The worker claims nothing more until it is resumed.';
  const alone = onlyHere(worker, all);
  if (!alone.length) return finishes;
  const more = alone.length > NAMED ? ` and ${alone.length - NAMED} more` : '';
  return `${finishes} No other worker serves ${alone.slice(0, NAMED).join(', ')}${more}: these jobs will wait.`;
}
