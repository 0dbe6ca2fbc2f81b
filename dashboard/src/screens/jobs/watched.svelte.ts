/** Loads a list of jobs again when it may have changed. */
import type { ListFilter } from '@forge-jobs/client/api';
import { untrack } from 'svelte';
import { connection } from '../../api/connection.svelte';
import type { Resource } from '../../api/resource.svelte';
import { session } from '../../api/session.svelte';

/**
 * Load the list after changes of the newest jobs that match, but not while the page is paused or
 * hidden. Without a filter, nothing is watched.
 */
export function watch(filter: () => ListFilter | undefined, list: Resource<unknown>): void {
  $effect(() => {
    const wanted = filter();
    if (!wanted || connection.isPaused) return;
    let isFirst = true;
    return session.client.watchList(wanted, () => {
      // The first call says that changes are noticed from now on; those since the load were not.
      const isCurrent = isFirst && untrack(() => list.isLoading);
      isFirst = false;
      if (!document.hidden && !isCurrent) untrack(() => void list.refresh());
    });
  });
}
