/** Actions on many jobs: which ones, and how they are asked for. */
import type { BulkAction, BulkPlanOut } from '../../api/schema';
import { commandLine } from '../../format/commands';
import { commandOptions, countQuery, hasFilter, inputOf } from './query';

export interface BulkKind {
  readonly action: BulkAction;
  /** What is done, as a verb. */
  readonly verb: string;
  /** What its button says beside the number of jobs. */
  readonly text: string;
  readonly effect: string;
  readonly isReversible?: boolean;
}

export const KINDS: readonly BulkKind[] = [
  {
    action: 'cancel',
    verb: 'Cancel',
    text: 'Cancel',
    effect: 'Waiting jobs will not run, and workers stop those that run.',
  },
  {
    action: 'run_now',
    verb: 'Run now',
    text: 'Run now',
    effect: 'Waiting jobs are due at once.',
    isReversible: true,
  },
  {
    action: 'rerun',
    verb: 'Rerun',
    text: 'Rerun',
    effect: 'Each final job is done again by a new job with the same input.',
    isReversible: true,
  },
  {
    action: 'reprioritise',
    verb: 'Change priority of',
    text: 'Change priority',
    effect: 'Waiting jobs get another priority.',
    isReversible: true,
  },
  {
    action: 'move',
    verb: 'Move',
    text: 'Move',
    effect: 'Waiting jobs go to another queue.',
    isReversible: true,
  },
  {
    action: 'delete',
    verb: 'Delete',
    text: 'Delete',
    effect:
      'Pending jobs are cancelled, those that wait for a retry fail, and final ones are erased for good.',
  },
];

/** Which jobs: some by id, or all that match a filter. */
export type Selection =
  | { readonly ids: readonly string[] }
  | { readonly filter: Readonly<Record<string, unknown>> }
  | { readonly all: true };

/** Return the selection of all jobs of an address. */
export function allOf(address: Readonly<Record<string, string>>, now: number): Selection {
  if (!hasFilter(address)) return { all: true };
  const filter: Record<string, unknown> = { ...countQuery(address, now) };
  if (address.status) filter.status = address.status;
  // Numbers of JSON; as bigints they lose nothing.
  if (address.tenant_id) filter.tenant_id = BigInt(address.tenant_id);
  if (address.q) filter.q = address.q;
  const [path, value] = inputOf(address);
  if (path) filter.input = { [path]: value };
  return { filter };
}

export interface BulkChoice {
  readonly rate: string;
  readonly priority: string;
  readonly queue: string;
}

/** Return the body of `POST /_api/jobs/bulk`. */
export function bulkBody(
  action: BulkAction,
  selection: Selection,
  choice: BulkChoice,
  reason: string,
): Record<string, unknown> {
  const body: Record<string, unknown> = { action, ...selection, reason };
  if (choice.rate) body.rate = Number(choice.rate);
  if (choice.priority) body.priority = choice.priority;
  if (choice.queue.trim()) body.queue = choice.queue.trim();
  return body;
}

/** Return the same as a `forge jobs bulk` command. */
export function bulkCommand(
  action: BulkAction,
  selection: Selection,
  address: Readonly<Record<string, string>>,
  choice: BulkChoice,
  reason: string,
): string {
  const words = ['forge', 'jobs', 'bulk', action.replace('_', '-')];
  if ('ids' in selection) words.push(...selection.ids.flatMap((id) => ['--id', id]));
  return commandLine(words, {
    ...('filter' in selection ? commandOptions(address, Date.now()) : {}),
    all: 'all' in selection,
    'to-priority': choice.priority,
    'to-queue': choice.queue.trim(),
    rate: choice.rate,
    reason,
  });
}

/** Whether no job can be changed: a search that stopped early may have found none so far. */
export function isEmpty({ count, precision }: Pick<BulkPlanOut, 'count' | 'precision'>): boolean {
  return count === 0 && precision === 'exact';
}

/** Return the action's object, such as "3 jobs". */
export function labelOf({ verb }: BulkKind, jobs: string): string {
  return verb === 'Run now' ? `Run ${jobs} now` : `${verb} ${jobs}`;
}
