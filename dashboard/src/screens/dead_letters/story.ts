/** What happened to a dead letter: its dispatch, its attempts, its reviews. */
import type { AttemptOut, AuditEvent, DeadLetterDetail } from '../../api/schema';
import { plural } from '../../format/numbers';
import type { TimelineEntry } from '../../ui/Timeline.svelte';

/** An attempt as the dead letter keeps it. */
type KeptAttempt = Pick<
  AttemptOut,
  'attempt' | 'outcome' | 'error' | 'exception' | 'started_at' | 'ended_at'
>;

const EVENTS: Readonly<Record<string, { title: string; tone: string }>> = {
  job_dlq_reprocess_requested: { title: 'reprocess requested', tone: 'running' },
  job_dlq_reprocess_success: { title: 'reprocessed as a new job', tone: 'completed' },
  job_dlq_reprocess_failed: { title: 'reprocess refused', tone: 'failed' },
  job_dlq_discarded: { title: 'discarded', tone: 'cancelled' },
};

export function storyOf(
  letter: DeadLetterDetail,
  attempts: readonly AttemptOut[],
  events: readonly AuditEvent[],
): TimelineEntry[] {
  const kept = (Array.isArray(letter.attempts) ? letter.attempts : []) as KeptAttempt[];
  const entries = [
    entry('dispatched', letter.original_created_at, 'dispatched', 'waiting'),
    ...kept.map((attempt, index) => attemptEntry(letter, attempt, index, attempts)),
    entry(
      'died',
      letter.created_at,
      'became a dead letter',
      'failed',
      `after ${plural(letter.attempt_count, 'attempt')}`,
    ),
    ...events.map(eventEntry),
    ...(isDiscardedInBulk(letter, events) ? [discardEntry(letter)] : []),
  ];
  return entries.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

function attemptEntry(
  letter: DeadLetterDetail,
  kept: KeptAttempt,
  index: number,
  attempts: readonly AttemptOut[],
): TimelineEntry {
  const same = attempts.find(
    ({ attempt, outcome, started_at }) =>
      attempt === kept.attempt &&
      outcome === kept.outcome &&
      Date.parse(started_at ?? '') === Date.parse(kept.started_at ?? ''),
  );
  const what =
    kept.outcome === 'dead_letter' ? 'failed for good' : kept.outcome.replaceAll('_', ' ');
  return {
    ...entry(
      `attempt ${index}`,
      kept.ended_at ?? kept.started_at ?? letter.created_at,
      `attempt ${kept.attempt}: ${what}`,
      'failed',
      kept.error ?? kept.exception ?? undefined,
    ),
    folded: same?.trace ? { title: 'traceback', text: same.trace } : undefined,
  };
}

function eventEntry(event: AuditEvent): TimelineEntry {
  const known = EVENTS[event.event] ?? { title: event.event.replaceAll('_', ' '), tone: 'waiting' };
  const reason = (event.detail as { reason?: unknown } | null)?.reason;
  const note = [event.notes, typeof reason === 'string' ? reason : undefined];
  return entry(
    `event ${event.id}`,
    event.created_at,
    `${known.title}${event.actor ? ` by ${event.actor}` : ''}`,
    known.tone,
    note.filter(Boolean).join('\n') || undefined,
  );
}

/** Whether it was discarded with many others: the one audit event of that is not this letter's. */
function isDiscardedInBulk(letter: DeadLetterDetail, events: readonly AuditEvent[]): boolean {
  const isOfLetter = events.some(({ event }) => event === 'job_dlq_discarded');
  return letter.status === 'discarded' && !isOfLetter;
}

function discardEntry(letter: DeadLetterDetail): TimelineEntry {
  return entry(
    'discarded',
    letter.reviewed_at ?? letter.created_at,
    `discarded${letter.reviewed_by ? ` by ${letter.reviewed_by}` : ''}`,
    'cancelled',
    letter.notes ?? undefined,
  );
}

function entry(id: string, at: string, title: string, tone: string, note?: string): TimelineEntry {
  return { id, at, title, tone, note };
}
