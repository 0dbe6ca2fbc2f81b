/** What can be done with one dead letter, or with all of a cause. */

import { writeJson } from '../../api/json';
import type { BulkOut, DeadLetterDetail, ReprocessOut } from '../../api/schema';
import { commandLine } from '../../format/commands';
import { plural } from '../../format/numbers';
import { href } from '../../router.svelte';
import type { Action } from '../../ui/action';
import type { JsonEdit } from '../../ui/json_edit.svelte';
import { type Causes, causeBody, causeOptions } from './causes';

export const REVIEW = '/api/jobs/admin/dlq/';

/** How fast a worker reprocesses many, and when it stops. */
export interface Pace {
  rate: number;
  canary: number;
  canary_timeout: string;
  max_failures: number;
  /** The name of a priority; empty: that of the original job. */
  priority: string;
}

export function usualPace(): Pace {
  return { rate: 10, canary: 1, canary_timeout: '5m', max_failures: 5, priority: 'low' };
}

/** Return the part of a request that edits the payload: a patch, unless it cannot express it. */
export function editBody(edit: JsonEdit): { patch?: unknown; payload?: unknown } {
  if (!edit.isChanged) return {};
  return edit.nullPaths.length ? { payload: edit.value } : { patch: edit.patch };
}

export function reprocessLetter(letter: DeadLetterDetail, edit: JsonEdit): Action {
  const id = `${letter.dlq_id}`;
  return {
    route: 'POST /api/jobs/admin/dlq/{dlq_id}/reprocess/',
    path: `${REVIEW}${id}/reprocess/`,
    label: 'Reprocess…',
    body: (notes) => ({ ...editBody(edit), ...(notes ? { notes } : {}) }),
    command: (notes) => {
      const { patch, payload } = editBody(edit);
      return commandLine(['forge', 'dlq', 'reprocess', id], {
        patch: patch === undefined ? undefined : writeJson(patch),
        payload: payload === undefined ? undefined : writeJson(payload),
        notes,
      });
    },
    confirm: {
      effect: `A new ${letter.job_type} job is dispatched now, with its attempts from the start. The original payload is kept.`,
      reason: 'optional',
      isReversible: true,
    },
    done: (answer) => {
      const { new_job_id } = answer as ReprocessOut;
      const link = { href: href(`/jobs/${new_job_id}`), text: 'Show the new job' };
      return { text: 'Reprocessed as a new job.', link };
    },
  };
}

export function discardLetter(letter: Pick<DeadLetterDetail, 'dlq_id' | 'job_type'>): Action {
  const id = `${letter.dlq_id}`;
  return {
    route: 'POST /api/jobs/admin/dlq/{dlq_id}/discard/',
    path: `${REVIEW}${id}/discard/`,
    label: 'Discard…',
    body: (notes) => ({ notes }),
    command: (notes) => commandLine(['forge', 'dlq', 'discard', id], { notes: notes || 'REASON' }),
    confirm: {
      effect: `This ${letter.job_type} will not run again, and its review is closed for good. The dead letter is kept, with the reason.`,
      reason: 'required',
    },
    done: () => ({ text: 'Discarded.' }),
  };
}

export function reprocessMany(causes: Causes, count: number, pace: Pace): Action {
  const { rate, canary, canary_timeout, max_failures, priority } = pace;
  return {
    route: 'POST /api/jobs/admin/dlq/reprocess/',
    path: `${REVIEW}reprocess/`,
    label: `Reprocess ${plural(count, 'dead letter')}…`,
    body: (notes) => ({
      ...causeBody(causes),
      ...(notes ? { notes } : {}),
      rate,
      canary,
      canary_timeout,
      max_failures,
      priority: priority || null,
    }),
    // The command line has no way to keep the priority of each job.
    command: (notes) =>
      commandLine(['forge', 'dlq', 'reprocess'], {
        ...causeOptions(causes),
        rate,
        canary: `${canary}`,
        'canary-timeout': canary_timeout,
        'max-failures': max_failures,
        priority,
        notes,
      }),
    confirm: { effect: '', reason: 'optional', isReversible: true },
    done: (answer) => ({
      text: `A worker reprocesses ${plural((answer as BulkOut).letters, 'dead letter')}.`,
      link: { href: href(`/jobs/${(answer as BulkOut).job_id}`), text: 'Follow the request' },
    }),
  };
}

export function discardMany(causes: Causes, count: number): Action {
  return {
    route: 'POST /api/jobs/admin/dlq/discard/',
    path: `${REVIEW}discard/`,
    label: `Discard ${plural(count, 'dead letter')}…`,
    body: (notes) => ({ ...causeBody(causes), notes }),
    command: (notes) =>
      commandLine(['forge', 'dlq', 'discard'], {
        ...causeOptions(causes),
        notes: notes || 'REASON',
      }),
    confirm: {
      effect: `${plural(count, 'job')} will not run again, and ${count === 1 ? 'its review is' : 'their reviews are'} closed for good. Dead letters that arrive later are not included.`,
      reason: 'required',
    },
    done: (answer) => ({
      text: `A worker discards ${plural((answer as BulkOut).letters, 'dead letter')}.`,
      link: { href: href(`/jobs/${(answer as BulkOut).job_id}`), text: 'Follow the request' },
    }),
  };
}
