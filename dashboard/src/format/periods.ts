/** How far back a screen looks, as its address and the commands write it. */
export const PERIODS: Readonly<Record<string, number>> = {
  '15m': 15 * 60_000,
  '1h': 3_600_000,
  '6h': 6 * 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
  '30d': 30 * 86_400_000,
};

/** Return the length of a period, or undefined for a text that is none. */
export function periodOf(text: string | undefined): number | undefined {
  return text !== undefined && Object.hasOwn(PERIODS, text) ? PERIODS[text] : undefined;
}

/** Return when a period began, as the server reads it. */
export function sinceOf(period: number, now: number): string {
  return new Date(now - period).toISOString();
}

/** Return `24 h` for `24h`. */
export function periodLabel(text: string): string {
  return text.replace(/(\d)(\D)/, '$1 $2');
}

export const DEFAULT_PERIOD = '1h';

/** Return the period of an address, or the default. */
export function chosenPeriod(address: Readonly<Record<string, string>>): string {
  const { last } = address;
  return last !== undefined && periodOf(last) ? last : DEFAULT_PERIOD;
}

/** Return the bounds of a period that ends now, as statistics are asked for. */
export function rangeOf(period: string, now: number): { from: string } {
  return { from: sinceOf(periodOf(period) ?? 3_600_000, now) };
}

/** Return how often figures of a period are loaded: those of a month change little. */
export function paceOf(period: string): number {
  return Math.min(60_000, Math.max(5_000, (periodOf(period) ?? 0) / 720));
}
