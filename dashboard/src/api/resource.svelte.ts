/** Data of a screen: loaded when its parameters change, and again while the page is live. */
import type { ForgeError } from '@forge-jobs/client';
import { asForgeError } from '@forge-jobs/client/errors';
import { untrack } from 'svelte';
import { connection } from './connection.svelte';
import { isOutage } from './request';

export interface ResourceOptions {
  /** Milliseconds between two loads while the page is live; undefined: it is loaded once. */
  readonly every?: number | (() => number | undefined);
  /** Whether data is shown until that of other parameters has arrived. */
  readonly keep?: boolean;
}

const LONGEST_DELAY = 30_000;

export class Resource<T> {
  data = $state.raw<T>();
  /** Why the last load failed; `data` then is older. */
  error = $state.raw<ForgeError>();
  isLoading = $state(false);
  #load: (signal: AbortSignal) => Promise<T>;
  #every: () => number | undefined;
  #abort: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(load: (signal: AbortSignal) => Promise<T>, { every }: ResourceOptions) {
    this.#load = load;
    this.#every = typeof every === 'function' ? every : () => every;
  }

  /** Load now; keep the data until the answer arrives. */
  async refresh(): Promise<void> {
    this.stop();
    const abort = new AbortController();
    this.#abort = abort;
    this.isLoading = true;
    try {
      const data = await this.#load(abort.signal);
      if (this.#abort !== abort) return;
      this.data = data;
      this.error = undefined;
    } catch (cause) {
      if (this.#abort !== abort) return;
      this.error = asForgeError(cause, 'failed');
    }
    this.isLoading = false;
    this.#abort = undefined;
    this.#plan();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = undefined;
  }

  /** Continue after a pause, or while the page was hidden. */
  wake(): void {
    if (!this.#abort && (this.#every() || (this.error && isOutage(this.error))))
      void this.refresh();
  }

  #plan(): void {
    const isCutOff = this.error && isOutage(this.error);
    const every = this.#every();
    if (!every && !isCutOff) return;
    const usual = every ?? 2000;
    // An outage is retried in any case, ever more slowly; other errors at the usual pace.
    const delay = isCutOff
      ? Math.min(LONGEST_DELAY, Math.max(1000, 500 * 2 ** Math.min(connection.failures, 8)))
      : usual;
    this.#timer = setTimeout(() => {
      const isIdle = document.hidden || (connection.isPaused && !isCutOff);
      if (isIdle) this.#plan();
      else void this.refresh();
    }, delay);
  }
}

/**
 * Load data for the component that calls it. `load` runs again when state changes that it reads
 * before its first `await`.
 */
export function resource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  options: ResourceOptions = {},
): Resource<T> {
  let tracked: Promise<T> | undefined;
  const found = new Resource<T>((signal) => {
    const first = tracked;
    tracked = undefined;
    return first ?? load(signal);
  }, options);
  $effect(() => {
    const abort = new AbortController();
    const promise = load(abort.signal);
    promise.catch(() => {});
    untrack(() => {
      tracked = promise;
      if (!options.keep) found.data = undefined;
      found.error = undefined;
      void found.refresh();
    });
    const wake = () => {
      if (!document.hidden && !connection.isPaused) found.wake();
    };
    addEventListener('online', wake);
    document.addEventListener('visibilitychange', wake);
    return () => {
      abort.abort();
      found.stop();
      removeEventListener('online', wake);
      document.removeEventListener('visibilitychange', wake);
    };
  });
  $effect(() => {
    // What changed during a pause is shown at once; at first, it is being loaded.
    if (!connection.isPaused) untrack(() => found.wake());
  });
  return found;
}
