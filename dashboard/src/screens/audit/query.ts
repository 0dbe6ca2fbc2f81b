/** The filters of the audit screen, as the address has them. */
import type { Query } from '../../api/request';
import { periodOf, sinceOf } from '../../format/periods';

type Address = Readonly<Record<string, string>>;

/** Parameters that the server knows by the same name. */
export const FILTERS = ['event', 'actor', 'job_id', 'dlq_id', 'schedule_id', 'tenant_id'] as const;
export const PAGE = 50;

export function serverQuery(address: Address, now: number): Query {
  const query: Record<string, string | number> = { limit: PAGE };
  for (const name of [...FILTERS, 'cursor'] as const) {
    const value = address[name];
    if (value) query[name] = value;
  }
  const period = periodOf(address.last);
  if (period) query.since = sinceOf(period, now);
  return query;
}

export function hasFilter(address: Address): boolean {
  return FILTERS.some((name) => address[name]) || periodOf(address.last) !== undefined;
}

/** Return the options of `forge audit` for an address. */
export function commandOptions(address: Address, now: number): Record<string, string | undefined> {
  const { event, actor, job_id, dlq_id, schedule_id, tenant_id } = address;
  const period = periodOf(address.last);
  const since = period === undefined ? undefined : sinceOf(period, now).replace(/\.\d+Z$/, 'Z');
  return {
    event,
    actor,
    job: job_id,
    dlq: dlq_id,
    schedule: schedule_id,
    tenant: tenant_id,
    since,
  };
}
