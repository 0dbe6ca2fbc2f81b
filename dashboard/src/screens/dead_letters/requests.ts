/** Requests that review many dead letters, while a worker carries them out and shortly after. */
import { get } from '../../api/request';
import type { JobOut, JobPage } from '../../api/schema';
import { plural } from '../../format/numbers';
import { isFinal } from '../../format/statuses';
import { type Causes, overlaps } from './causes';

const TYPES = ['forge.reprocess', 'forge.discard'];
const NEWEST = 5;
/** Milliseconds for which the result stays on the screen. */
const KEPT = 10 * 60_000;

/** Return the requests that concern a selection, newest first. */
export async function requestsOf(shown: Causes, signal: AbortSignal): Promise<JobOut[]> {
  const pages = await Promise.all(
    TYPES.map((type) => get<JobPage>('/_api/jobs', { type, limit: NEWEST }, signal)),
  );
  return pages
    .flatMap(({ items }) => items)
    .filter((job) => overlaps((job.input ?? {}) as Causes, shown) && isRecent(job))
    .sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Return what a request has done, as its result says. */
export function resultText(job: Pick<JobOut, 'job_type' | 'output'>): string {
  const report = (job.output ?? {}) as Record<string, unknown>;
  const count = (name: string) => Number(report[name] ?? 0);
  const parts =
    job.job_type === 'forge.discard'
      ? [`${plural(count('done'), 'dead letter')} discarded`]
      : [`${plural(count('reprocessed'), 'dead letter')} reprocessed`];
  const outcomes: [string, string][] = [
    ['succeeded', 'succeeded'],
    ['failed_again', 'failed again'],
    ['cancelled', 'cancelled'],
    ['deleted', 'deleted'],
    ['unfinished', 'not finished'],
    ['skipped', 'reviewed by others'],
    ['failed', 'could not be changed'],
    ['locked', 'left locked'],
  ];
  for (const [name, words] of outcomes) if (count(name)) parts.push(`${count(name)} ${words}`);
  return parts.join(', ');
}

export function stoppedBecause(job: Pick<JobOut, 'output'>): string | undefined {
  const stopped = (job.output as { stopped?: unknown } | null)?.stopped;
  return typeof stopped === 'string' ? stopped : undefined;
}

function isRecent(job: JobOut): boolean {
  if (!isFinal(job.status)) return true;
  const end = job.completed_at ?? job.failed_at ?? job.cancelled_at;
  return !!end && Date.now() - Date.parse(end) < KEPT;
}
