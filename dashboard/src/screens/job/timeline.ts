/** The timeline of the server as the page shows it: lines of a log together, one entry per event. */
import type { JobOut, TimelineEntryOut } from '../../api/schema';
import { lookOf } from '../../format/statuses';
import { formatDuration } from '../../format/times';
import type { TimelineEntry } from '../../ui/Timeline.svelte';

/** An entry, and the lines that the handler wrote at this point. */
export interface JobEntry extends TimelineEntry {
  readonly lines?: readonly TimelineEntryOut[] | undefined;
}

const TONES: Readonly<Record<string, string>> = {
  dispatched: 'waiting',
  claimed: 'running',
  started: 'running',
  failed: 'failed',
  crashed: 'failed',
  retry: 'retry',
  completed: 'completed',
};
const LINES = ['log', 'progress'];

/** When a waiting job is due, if that is later. */
export interface Due {
  readonly at: string;
  readonly status: string;
}

export function dueOf(
  job: Pick<JobOut, 'status' | 'scheduled_at'>,
  now: number,
): string | undefined {
  const isWaiting = job.status === 'pending' || job.status === 'retry';
  return isWaiting && Date.parse(job.scheduled_at) > now ? job.scheduled_at : undefined;
}

export function timelineOf(items: readonly TimelineEntryOut[], due: Due | undefined): JobEntry[] {
  const entries: JobEntry[] = [];
  let lines: TimelineEntryOut[] = [];
  const flush = () => {
    const first = lines[0];
    if (first) entries.push(linesEntry(first, lines));
    lines = [];
  };
  for (const item of items) {
    if (LINES.includes(item.kind)) {
      lines.push(item);
    } else if (!isRepetition(item)) {
      flush();
      entries.push(entryOf(item, entries.length));
    }
  }
  flush();
  if (due) {
    const tone = due.status === 'retry' ? 'retry' : 'waiting';
    entries.push({ id: 'due', at: due.at, title: 'due', tone });
  }
  return entries;
}

/** The end of a completed job says the same as that of its attempt. */
function isRepetition({ kind, detail }: TimelineEntryOut): boolean {
  return kind === 'ended' && detail.status === 'completed';
}

function linesEntry(first: TimelineEntryOut, lines: readonly TimelineEntryOut[]): JobEntry {
  const logged = lines.filter(({ kind }) => kind === 'log').length;
  const noun = logged === lines.length ? 'log line' : logged ? 'line' : 'progress message';
  const title = `${lines.length} ${noun}${lines.length === 1 ? '' : 's'}`;
  const isBad = lines.some(({ detail }) => detail.level === 'error' || detail.level === 'critical');
  return {
    id: `lines ${first.lease} ${first.at} ${first.detail.number ?? ''} ${first.message}`,
    at: first.at,
    title,
    tone: isBad ? 'failed' : 'waiting',
    lines,
  };
}

function entryOf(item: TimelineEntryOut, place: number): JobEntry {
  const { at, kind, message, attempt, detail } = item;
  const base = { id: `${place} ${kind} ${at}`, at, tone: TONES[kind] ?? 'waiting' };
  switch (kind) {
    case 'dispatched':
      return { ...base, title: message, note: dueNote('due', detail.scheduled_at) };
    case 'failed':
    case 'crashed': {
      const { word, tone } = lookOf(`${detail.outcome}`);
      const isCancelled = tone === 'cancelled';
      return {
        ...base,
        tone: isCancelled ? tone : 'failed',
        title: `attempt ${attempt} ${kind === 'crashed' ? 'crashed' : isCancelled ? word : 'failed'}`,
        note: message,
        folded: detail.trace ? { title: 'traceback', text: `${detail.trace}` } : undefined,
      };
    }
    case 'retry':
      return { ...base, title: message, note: dueNote('next attempt due', detail.due_at) };
    case 'snoozed':
      return { ...base, title: message, note: dueNote('until', detail.until) };
    case 'completed':
      return {
        ...base,
        title: message,
        note:
          typeof detail.seconds === 'number'
            ? `ran for ${formatDuration(1000 * detail.seconds)}`
            : undefined,
      };
    case 'ended':
      return {
        ...base,
        title: `ended as ${lookOf(`${detail.status}`).word}`,
        tone: lookOf(`${detail.status}`).tone,
      };
    case 'audit':
      return {
        ...base,
        title: message.replaceAll('_', ' '),
        note: detail.notes ? `“${detail.notes}”` : undefined,
      };
    default:
      return { ...base, title: message };
  }
}

function dueNote(words: string, at: unknown): string | undefined {
  if (typeof at !== 'string') return undefined;
  return `${words} ${new Date(at).toLocaleTimeString('en-GB')}`;
}
