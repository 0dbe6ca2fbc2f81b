/** One status, one colour, one word. */
export const STATUSES = [
  'pending',
  'claimed',
  'running',
  'retry',
  'completed',
  'failed',
  'dead_letter',
  'cancelled',
] as const;

export type Status = (typeof STATUSES)[number];
export type Tone = 'waiting' | 'running' | 'completed' | 'retry' | 'failed' | 'cancelled';

interface StatusLook {
  readonly tone: Tone;
  readonly word: string;
  /** A sign that differs without colour. */
  readonly mark: string;
}

/** Statuses of jobs, and the outcomes of attempts and runs. */
const LOOKS: Readonly<Record<string, StatusLook>> = {
  pending: { tone: 'waiting', word: 'pending', mark: '○' },
  claimed: { tone: 'running', word: 'claimed', mark: '◔' },
  running: { tone: 'running', word: 'running', mark: '◐' },
  retry: { tone: 'retry', word: 'retry', mark: '↻' },
  completed: { tone: 'completed', word: 'completed', mark: '✓' },
  failed: { tone: 'failed', word: 'failed', mark: '✕' },
  dead_letter: { tone: 'failed', word: 'dead letter', mark: '✕' },
  cancelled: { tone: 'cancelled', word: 'cancelled', mark: '⊘' },
  pending_review: { tone: 'failed', word: 'waiting for review', mark: '!' },
  reprocessed: { tone: 'completed', word: 'reprocessed', mark: '↻' },
  discarded: { tone: 'cancelled', word: 'discarded', mark: '⊘' },
  paused: { tone: 'cancelled', word: 'paused', mark: '‖' },
  // States of schedules, and the outcomes of their runs.
  enabled: { tone: 'completed', word: 'enabled', mark: '●' },
  disabled: { tone: 'cancelled', word: 'disabled', mark: '‖' },
  failing: { tone: 'failed', word: 'failing', mark: '✕' },
  crashed: { tone: 'failed', word: 'crashed', mark: '✕' },
  lost: { tone: 'retry', word: 'lost', mark: '↻' },
  released: { tone: 'retry', word: 'released', mark: '↻' },
  snoozed: { tone: 'waiting', word: 'snoozed', mark: '○' },
  skipped: { tone: 'cancelled', word: 'skipped', mark: '⊘' },
  // States of workers.
  alive: { tone: 'completed', word: 'alive', mark: '●' },
  drained: { tone: 'cancelled', word: 'drained', mark: '‖' },
  draining: { tone: 'retry', word: 'draining', mark: '◔' },
  dead: { tone: 'failed', word: 'dead', mark: '✕' },
};

export function lookOf(status: string): StatusLook {
  return LOOKS[status] ?? { tone: 'waiting', word: status.replaceAll('_', ' '), mark: '•' };
}

const FINAL: ReadonlySet<string> = new Set(['completed', 'failed', 'dead_letter', 'cancelled']);

export function isFinal(status: string): boolean {
  return FINAL.has(status);
}

const PRIORITY_NAMES: Readonly<Record<number, string>> = {
  100: 'critical',
  75: 'high',
  50: 'normal',
  25: 'low',
  0: 'background',
};

export function priorityName(priority: number): string {
  return PRIORITY_NAMES[priority] ?? `${priority}`;
}

/** The names of all priorities, the highest first. */
export const PRIORITIES = ['critical', 'high', 'normal', 'low', 'background'] as const;
