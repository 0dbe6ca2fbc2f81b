/** The number beside "Dead letters" in the navigation: what waits for a review. */
import type { StatisticsOut } from '../../api/schema';
import { compact, formatCount } from '../../format/numbers';
import { counts } from '../../shell/counts.svelte';

export function showCount(statistics: StatisticsOut | undefined): void {
  if (!statistics) return;
  const waiting = statistics.by_status.pending_review ?? 0;
  counts.set(
    '/dead-letters',
    waiting
      ? { text: compact(waiting), title: `${formatCount(waiting)} wait for review` }
      : undefined,
  );
}
