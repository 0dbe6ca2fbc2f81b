/** Keeps the numbers of the navigation up to date, whichever screen is shown. */
import { get } from '../api/request';
import { resource } from '../api/resource.svelte';
import type { FindingOut, ItemsFindingOut, OverviewOut } from '../api/schema';
import { session } from '../api/session.svelte';
import { compact, formatCount, plural } from '../format/numbers';
import { counts, type NavigationCount } from './counts.svelte';

// A server repeats its answer to all who ask within seconds.
const EVERY = 15_000;

/** Watch for the component that calls it. */
export function watchCounts(): void {
  const overview = resource((signal) => ifAllowed<OverviewOut>('/_api/overview', signal), {
    every: EVERY,
  });
  const findings = resource((signal) => ifAllowed<ItemsFindingOut>('/_api/findings', signal), {
    every: EVERY,
  });
  $effect(() => {
    const data = overview.data;
    if (!data) return;
    const { dead_letters_waiting: letters, schedules_failing: failing } = data;
    counts.set('/dead-letters', count(letters, `${formatCount(letters)} wait for review`));
    counts.set(
      '/schedules',
      count(failing.count, `${formatCount(failing)} failed at the last run`),
    );
  });
  $effect(() => {
    const found = findings.data?.items.filter(isUrgent);
    if (found) counts.set('/database', count(found.length, plural(found.length, 'finding')));
  });
}

async function ifAllowed<T>(path: string, signal: AbortSignal): Promise<T | undefined> {
  return session.can(`GET ${path}`) ? get<T>(path, {}, signal) : undefined;
}

function isUrgent({ severity }: FindingOut): boolean {
  return severity === 'problem' || severity === 'warning';
}

function count(number: number | bigint, title: string): NavigationCount | undefined {
  return number ? { text: compact(number), title } : undefined;
}
