/** What audit events are about, in words. */
import type { AuditEvent } from '../../api/schema';
import { href } from '../../router.svelte';

/** An event with its id as text, as lists compare it. */
export type AuditRow = Omit<AuditEvent, 'id'> & { readonly id: string };

/** Words of names that are no words. */
const WORDS: Readonly<Record<string, string>> = { dlq: 'dead letter' };

/** Return `dead letter discarded` for `job_dlq_discarded`. */
export function eventWords(event: string): string {
  return event
    .replace(/^job_dlq_/, 'dlq_')
    .split('_')
    .map((word) => WORDS[word] ?? word)
    .join(' ');
}

export interface Target {
  readonly what: string;
  readonly id: string;
  readonly href: string;
}

/** Return what an event is about, the most specific first. */
export function targetsOf(event: AuditRow): Target[] {
  const targets: Target[] = [];
  const add = (what: string, path: string, id: string | number | bigint | null | undefined) => {
    if (id === null || id === undefined) return;
    targets.push({ what, id: `${id}`, href: href(`${path}/${encodeURIComponent(`${id}`)}`) });
  };
  add('dead letter', '/dead-letters', event.dlq_id);
  add('schedule', '/schedules', event.schedule_id);
  const { worker_id, type, queue } = namesOf(event);
  add('worker', '/workers', worker_id);
  add('job type', '/types', type);
  add('queue', '/queues', queue);
  add('job', '/jobs', event.job_id);
  return targets;
}

/** What drains and pauses name in their details. */
function namesOf({ event, detail }: AuditRow): Record<string, string | undefined> {
  if (!/^(worker|pause)_/.test(event) || typeof detail !== 'object' || !detail) return {};
  return Object.fromEntries(
    Object.entries(detail).filter(([, value]) => typeof value === 'string'),
  );
}
