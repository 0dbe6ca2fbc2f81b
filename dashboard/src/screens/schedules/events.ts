/** Audit events of a schedule as entries of a timeline, oldest first. */
import type { AuditEvent } from '../../api/schema';
import type { TimelineEntry } from '../../ui/Timeline.svelte';

const TITLES: Readonly<Record<string, { title: string; tone: string }>> = {
  schedule_enabled: { title: 'enabled', tone: 'completed' },
  schedule_disabled: { title: 'disabled', tone: 'cancelled' },
  schedule_run_requested: { title: 'run requested', tone: 'running' },
  schedule_edited: { title: 'edited', tone: 'retry' },
};

export function eventEntries(events: readonly AuditEvent[]): TimelineEntry[] {
  return [...events].reverse().map((event) => {
    const known = TITLES[event.event] ?? {
      title: event.event.replaceAll('_', ' '),
      tone: 'waiting',
    };
    return {
      id: `${event.id}`,
      at: event.created_at,
      title: `${known.title}${event.actor ? ` by ${event.actor}` : ''}`,
      tone: known.tone,
      note: [changesOf(event), event.notes].filter(Boolean).join('\n') || undefined,
    };
  });
}

interface Changes {
  readonly changed?: readonly string[];
  readonly before?: Readonly<Record<string, unknown>>;
  readonly after?: Readonly<Record<string, unknown>>;
}

function shown(value: unknown): string {
  return value === null || value === undefined ? 'none' : `${value}`;
}

/** Return what an edit changed, one line each. */
function changesOf({ detail }: AuditEvent): string {
  const { changed, before, after } = (detail ?? {}) as Changes;
  return (changed ?? [])
    .map((name) =>
      before && name in before
        ? `${name}: ${shown(before[name])} → ${shown(after?.[name])}`
        : name.replaceAll('_', ' '),
    )
    .join('\n');
}
