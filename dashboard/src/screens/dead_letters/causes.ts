/** Causes of dead letters in words, and the filters that select them. */
import type { Query } from '../../api/request';
import type { DeadLetterGroupOut } from '../../api/schema';

export const STATUSES = ['pending_review', 'reprocessed', 'discarded'] as const;
export type LetterStatus = (typeof STATUSES)[number];

/** What groups the dead letters that a person selects; empty: all. */
export interface Causes {
  readonly job_type?: string | undefined;
  readonly error_class?: string | undefined;
  readonly category?: string | undefined;
  readonly fingerprint?: string | undefined;
}

export const FILTERS = ['job_type', 'error_class', 'category'] as const;

/** Periods of sparklines: the step and how many of them. */
export const PERIODS: Readonly<Record<string, { step: string; steps: number; each: string }>> = {
  '1h': { step: '2m', steps: 30, each: 'two minutes' },
  '24h': { step: '1h', steps: 24, each: 'hour' },
  '7d': { step: '6h', steps: 28, each: 'six hours' },
  '30d': { step: '1d', steps: 30, each: 'day' },
};
export const USUAL_PERIOD = '24h';

type Cause = Pick<DeadLetterGroupOut, 'exception' | 'error_class' | 'place' | 'fingerprint'>;

/** Return what failed: `ConnectionError at mail:send`. */
export function causeTitle({ exception, error_class, place }: Cause): string {
  const what = exception ?? error_class ?? 'Failure';
  return place ? `${what} at ${place}` : what;
}

export function statusOf(address: Readonly<Record<string, string>>): LetterStatus {
  return STATUSES.find((status) => status === address.status) ?? 'pending_review';
}

export function causesOf(address: Readonly<Record<string, string>>): Causes {
  return Object.fromEntries(
    FILTERS.flatMap((name) => (address[name] ? [[name, address[name]]] : [])),
  );
}

/** Return the query of the groups for an address. */
export function groupsQuery(address: Readonly<Record<string, string>>): Query {
  const { step, steps } = periodOf(address);
  return { status: statusOf(address), ...causesOf(address), step, steps };
}

export function periodOf(address: Readonly<Record<string, string>>) {
  const period = PERIODS[address.last ?? USUAL_PERIOD] ?? PERIODS[USUAL_PERIOD];
  return period as (typeof PERIODS)[string];
}

/** Return the options of `forge dlq` that select these causes. */
export function causeOptions(causes: Causes): Record<string, string | boolean | undefined> {
  const { job_type, error_class, category, fingerprint } = causes;
  const options = { type: job_type, 'error-class': error_class, category, fingerprint };
  return hasFilter(causes) ? options : { all: true };
}

/** Return the body that selects these causes. */
export function causeBody(causes: Causes): Record<string, unknown> {
  return hasFilter(causes) ? { ...causes } : { all: true };
}

/** Whether a request for some dead letters concerns those of another selection. */
export function overlaps(request: Causes, shown: Causes): boolean {
  const names = [...FILTERS, 'fingerprint'] as const;
  return names.every((name) => !request[name] || !shown[name] || request[name] === shown[name]);
}

function hasFilter(causes: Causes): boolean {
  return Object.values(causes).some(Boolean);
}
