/** The filters of the jobs screen, as the address has them. */
import type { Query } from '../../api/request';
import { STATUSES, type Status } from '../../format/statuses';

type Address = Readonly<Record<string, string>>;

/** Filters in the address; the server knows them by the same names. */
const SHARED = [
  'type',
  'queue',
  'priority',
  'tag',
  'error_class',
  'category',
  'tenant_id',
  'worker_id',
  'correlation_id',
  'parent_id',
  'retry_of',
  'idempotency_key',
  'since',
  'until',
] as const;
/** The names of those that `forge jobs list` calls otherwise. */
const OPTIONS: Readonly<Record<string, string>> = {
  tenant_id: 'tenant',
  worker_id: 'worker',
  parent_id: 'parent',
};
export const PAGE = 50;

export const PERIODS: Readonly<Record<string, number>> = {
  '15m': 15 * 60_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
};

/** Return the filters of an address that can be counted: those but the status and texts. */
export function countQuery(address: Address, now: number): Record<string, string> {
  const query: Record<string, string> = {};
  for (const name of SHARED) {
    const value = address[name];
    if (value) query[name] = value;
  }
  const period = PERIODS[address.last ?? ''];
  // By whole minutes, so that the server can answer the same question again.
  if (period) query.since = new Date(Math.floor((now - period) / 60_000) * 60_000).toISOString();
  return query;
}

/** Return the filters of an address, as the server names them. */
export function filterQuery(address: Address, now: number): Record<string, string> {
  const query = countQuery(address, now);
  if (address.status) query.status = address.status;
  if (address.q) query.q = address.q;
  const [path, value] = inputOf(address);
  if (path) query[`input.${path}`] = value;
  return query;
}

/** Return the query of a page of the list. */
export function listQuery(address: Address, now: number): Query {
  const query: Record<string, string | number> = { view: 'summary', limit: PAGE };
  if (address.cursor) query.cursor = address.cursor;
  return { ...query, ...filterQuery(address, now) };
}

/** Whether the address selects some jobs only. */
export function hasFilter(address: Address): boolean {
  return Object.keys(filterQuery(address, 0)).length > 0;
}

/** Whether the address has a value in the input or a text: the search compares each job. */
export function isSearch(address: Address): boolean {
  return !!address.q || !!inputOf(address)[0];
}

export function statusOf(address: Address): Status | undefined {
  return STATUSES.find((status) => status === address.status);
}

/** Return the options of `forge jobs list` for an address. */
export function commandOptions(address: Address, now: number): Record<string, string | undefined> {
  const options: Record<string, string | undefined> = { status: address.status };
  for (const [name, value] of Object.entries(countQuery(address, now))) {
    options[OPTIONS[name] ?? name.replaceAll('_', '-')] = value;
  }
  return { ...options, q: address.q, input: address.input };
}

/** Return the path and the value of `order_id=42`. */
export function inputOf(address: Address): [string, string] {
  const text = address.input ?? '';
  const at = text.indexOf('=');
  return at > 0 ? [text.slice(0, at), text.slice(at + 1)] : ['', ''];
}
