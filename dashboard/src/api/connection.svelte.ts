/** Whether data arrives: live, paused by the reader, or cut off. */
import type { ForgeError } from '@forge-jobs/client';

export type ConnectionState = 'live' | 'paused' | 'reconnecting' | 'offline';

class Connection {
  isPaused = $state(false);
  /** The newest error, while the server or its database is out of reach. */
  problem = $state.raw<ForgeError>();
  failures = 0;
  #isOnline = $state(navigator.onLine);

  state: ConnectionState = $derived.by(() => {
    if (!this.#isOnline) return 'offline';
    if (this.problem) return 'reconnecting';
    return this.isPaused ? 'paused' : 'live';
  });

  constructor() {
    addEventListener('online', () => {
      this.#isOnline = true;
    });
    addEventListener('offline', () => {
      this.#isOnline = false;
    });
  }

  reached(): void {
    this.failures = 0;
    this.problem = undefined;
  }

  lost(problem: ForgeError): void {
    this.failures++;
    this.problem = problem;
  }
}

export const connection = new Connection();
