/** Pauses: what they hold back, in words, and how they begin and end. */
import type { AddedPause, PauseOut } from '../../api/schema';
import { commandLine } from '../../format/commands';
import type { Action } from '../../ui/action';

/** Choices of how long a pause lasts; an empty one lasts until it is removed. */
export const DURATIONS: readonly (readonly [string, string])[] = [
  ['', 'until it is resumed'],
  ['15m', '15 minutes'],
  ['1h', '1 hour'],
  ['4h', '4 hours'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
];

interface PauseTarget {
  readonly type: string | null;
  readonly queue: string | null;
}

export function targetWords({ type, queue }: PauseTarget): string {
  if (type === null) return `queue ${queue}`;
  return queue === null ? type : `${type} in queue ${queue}`;
}

export function pauseAction(target: PauseTarget, duration: string): Action {
  const { type, queue } = target;
  return {
    route: 'POST /_api/pauses',
    path: '/_api/pauses',
    label: type === null ? 'Pause queue…' : 'Pause job type…',
    body: (reason) => ({
      ...(type === null ? {} : { type }),
      ...(queue === null ? {} : { queue }),
      ...(duration ? { for: duration } : {}),
      reason,
    }),
    command: (reason) =>
      commandLine(['forge', 'pause'], { type, queue, for: duration, reason: reason || 'REASON' }),
    confirm: {
      effect: `Workers start no more jobs of ${targetWords(target)}. What runs goes on, and new jobs wait.`,
      reason: 'required',
      isReversible: true,
    },
    done: (answer) => {
      const { warning } = answer as AddedPause;
      return { text: `Paused ${targetWords(target)}.${warning ? ` ${warning}` : ''}` };
    },
  };
}

export function resumeAction(pause: PauseOut): Action {
  const path = `/_api/pauses/${pause.pause_id}`;
  return {
    route: 'DELETE /_api/pauses/{pause_id}',
    path,
    label: `Resume ${targetWords(pause)}`,
    command: () => commandLine(['forge', 'resume', pause.pause_id]),
    done: () => ({ text: `${targetWords(pause)} is resumed: its jobs start within seconds.` }),
  };
}
