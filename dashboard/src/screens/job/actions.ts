/** What can be done with one job. */
import type { JobOut, RequestOut } from '../../api/schema';
import { commandLine } from '../../format/commands';
import { lookOf } from '../../format/statuses';
import type { Action } from '../../ui/action';

const OWNED = ['claimed', 'running'];
const FINAL = ['completed', 'failed', 'dead_letter', 'cancelled'];

export interface JobAction extends Action {
  /** Why it cannot be done with the job as it is. */
  readonly blocked?: string | undefined;
}

export function jobActions(job: Pick<JobOut, 'id' | 'job_type' | 'status'>): JobAction[] {
  const path = `/_api/jobs/${job.id}`;
  const isOwned = OWNED.includes(job.status);
  const isFinal = FINAL.includes(job.status);
  return [
    {
      route: 'POST /_api/jobs/{job_id}/cancel',
      path: `${path}/cancel`,
      label: 'Cancel job…',
      body: withReason,
      command: (reason) => commandLine(['forge', 'jobs', 'cancel', job.id], { reason }),
      confirm: {
        effect: isOwned
          ? `The worker stops ${job.job_type} where it is. What it has done so far is not undone.`
          : `${job.job_type} will not run. It stays in the list as cancelled.`,
        reason: 'optional',
      },
      blocked: isFinal ? `The job is already ${wordOf(job.status)}.` : undefined,
      done: requested('Cancellation requested.'),
    },
    {
      route: 'POST /_api/jobs/{job_id}/run_now',
      path: `${path}/run_now`,
      label: 'Run now',
      command: () => commandLine(['forge', 'jobs', 'run-now', job.id]),
      blocked: isOwned || isFinal ? `The job is ${wordOf(job.status)}.` : undefined,
      done: requested('The job is due now.'),
    },
    {
      route: 'DELETE /_api/jobs/{job_id}',
      path,
      label: 'Delete job…',
      body: withReason,
      command: (reason) => commandLine(['forge', 'jobs', 'delete', job.id], { reason }),
      confirm: {
        effect: isFinal
          ? 'The job, its input, its output and its attempts are erased. This cannot be undone.'
          : `${job.job_type} will not run: a waiting job is cancelled, one that was tried before fails.`,
        reason: 'optional',
      },
      blocked: isOwned ? 'The job is running; cancel it first.' : undefined,
      done: requested('Deletion requested.'),
    },
  ];
}

function withReason(reason: string): { reason?: string } {
  return reason ? { reason } : {};
}

export function wordOf(status: string): string {
  return lookOf(status).word;
}

/** A worker carries a request out: link to the job that does. */
export function requested(text: string): Action['done'] {
  return (answer) => {
    const { job_id } = answer as RequestOut;
    return { text, link: { href: `#/jobs/${job_id}`, text: 'Follow the request' } };
  };
}
