/** Tells the component that calls it when a list of jobs may have changed. */
import type { ListFilter } from '@forge-jobs/client/api';
import { untrack } from 'svelte';
import { connection } from '../../api/connection.svelte';
import { session } from '../../api/session.svelte';

/**
 * Call `onChange` after changes of the newest jobs that match, but not while the page is paused or
 * hidden. Without a filter, nothing is watched.
 */
export function watch(filter: () => ListFilter | undefined, onChange: () => void): void {
  $effect(() => {
    const wanted = filter();
    if (!wanted || connection.isPaused) return;
    let isFirst = true;
    return session.client.watchList(wanted, () => {
      // The list is loaded when the screen opens; the first call says that it is watched.
      if (!isFirst && !document.hidden) untrack(onChange);
      isFirst = false;
    });
  });
}
