/** Counts and shares, with their precision. */
export type Precision = 'exact' | 'at_least' | 'estimate';

export interface Count {
  readonly count: number | bigint;
  readonly precision: Precision;
}

const WHOLE = new Intl.NumberFormat('en-US');
const COMPACT = new Intl.NumberFormat('en-US', {
  notation: 'compact',
  minimumFractionDigits: 0,
  maximumFractionDigits: 1,
});

/** Return `1,204`, `≈ 1.2 M` for an estimate, `10,000+` for a lower bound. */
export function formatCount(count: Count | number | bigint): string {
  if (typeof count !== 'object') return WHOLE.format(count);
  switch (count.precision) {
    case 'exact':
      return WHOLE.format(count.count);
    case 'at_least':
      return `${WHOLE.format(count.count)}+`;
    case 'estimate':
      return `≈ ${compact(count.count)}`;
  }
}

/** Return a short form of a large number: `1.2 M`. */
export function compact(value: number | bigint): string {
  return value < 10_000 ? WHOLE.format(value) : COMPACT.format(value).replace(/(\D)$/, ' $1');
}

/** Return a share as `0.4 %`; small ones do not round to nothing. */
export function formatShare(part: number, whole: number): string {
  if (whole === 0) return '–';
  const percent = (100 * part) / whole;
  if (percent > 0 && percent < 0.1) return '< 0.1 %';
  return `${percent.toFixed(percent < 10 && percent !== 0 ? 1 : 0)} %`;
}

/** Return a percentage of the server: `0.4 %`; null is `–`. */
export function formatPercent(percent: number | null): string {
  return percent === null ? '–' : formatShare(percent, 100);
}

/** Return a rate: `1,240 /min`, `0.25 /min`. */
export function formatRate(perMinute: number): string {
  const value = perMinute >= 10 ? Math.round(perMinute) : Number(perMinute.toPrecision(2));
  return `${WHOLE.format(value)} /min`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = -1;
  do {
    value /= 1024;
    unit++;
  } while (value >= 1024 && unit < units.length - 1);
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Return a number with its noun: `1 job`, `1,204 jobs`. */
export function plural(count: number | bigint, noun: string, nouns = `${noun}s`): string {
  return `${WHOLE.format(count)} ${Number(count) === 1 ? noun : nouns}`;
}
