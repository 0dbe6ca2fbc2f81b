/** The timeline of a job, from its row and its failed attempts. */
import type { AttemptOut, JobOut } from '../../api/schema';
import { lookOf } from '../../format/statuses';
import type { TimelineEntry } from '../../ui/Timeline.svelte';

export function timelineOf(job: JobOut, attempts: readonly AttemptOut[]): TimelineEntry[] {
  const entries: TimelineEntry[] = [
    {
      id: 'dispatched',
      at: job.created_at,
      title: 'dispatched',
      tone: 'waiting',
      note: dispatchedBy(job),
    },
  ];
  for (const attempt of attempts) {
    const key = `${attempt.lease}`;
    if (attempt.started_at) {
      entries.push({
        id: `${key} start`,
        at: attempt.started_at,
        title: `attempt ${attempt.attempt} started`,
        tone: 'running',
      });
    }
    entries.push({
      id: `${key} end`,
      at: attempt.ended_at,
      title: `attempt ${attempt.attempt}: ${attempt.outcome}`,
      tone: attempt.outcome === 'cancelled' ? 'cancelled' : 'failed',
      note: attempt.error ?? attempt.exception ?? undefined,
      folded: attempt.trace ? { title: 'traceback', text: attempt.trace } : undefined,
    });
  }
  const last = attempts.at(-1);
  if (job.started_at && (!last?.started_at || job.started_at > last.started_at)) {
    entries.push({
      id: 'started',
      at: job.started_at,
      title: `attempt ${job.attempts} started`,
      tone: 'running',
    });
  }
  if (job.status === 'retry') {
    entries.push({
      id: 'due',
      at: job.scheduled_at,
      title: `attempt ${job.attempts + 1} is due`,
      tone: 'retry',
    });
  }
  const end = job.completed_at ?? job.failed_at ?? job.cancelled_at;
  if (end) {
    const { word, tone } = lookOf(job.status);
    entries.push({ id: 'end', at: end, title: word, tone });
  }
  return entries.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

function dispatchedBy(job: JobOut): string | undefined {
  const auth = job.auth as { name?: unknown; actor?: unknown } | null;
  const name = auth?.actor ?? auth?.name;
  return typeof name === 'string' ? `by ${name}` : undefined;
}
