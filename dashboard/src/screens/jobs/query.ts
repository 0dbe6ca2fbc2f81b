/** The filters of the jobs screen, as the address has them. */
import type { Query } from '../../api/request';
import { STATUSES, type Status } from '../../format/statuses';

/** Parameters of the address that the server knows by the same name. */
export const FILTERS = ['status', 'type', 'queue', 'priority', 'q'] as const;
export const PAGE = 50;

export const PERIODS: Readonly<Record<string, number>> = {
  '15m': 15 * 60_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
};

/** Return the query of the server for an address. */
export function serverQuery(address: Readonly<Record<string, string>>, now: number): Query {
  const query: Record<string, string | number> = { limit: PAGE };
  for (const name of FILTERS) {
    const value = address[name];
    if (value) query[name] = value;
  }
  const period = PERIODS[address.last ?? ''];
  if (period) query.since = new Date(now - period).toISOString();
  if (address.cursor) query.cursor = address.cursor;
  return query;
}

export function statusOf(address: Readonly<Record<string, string>>): Status | undefined {
  return STATUSES.find((status) => status === address.status);
}

/** Return the options of `forge jobs` for an address. */
export function commandOptions(
  address: Readonly<Record<string, string>>,
): Record<string, string | undefined> {
  const { status, type, queue, priority, q, last } = address;
  return { status, type, queue, priority, since: last, search: q };
}
