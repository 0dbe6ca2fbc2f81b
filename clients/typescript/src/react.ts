// A copy of this file must also compile in an app without React.
// biome-ignore lint/suspicious/noTsIgnore: with React, there is no error to expect
// @ts-ignore
import { useEffect, useState, useSyncExternalStore } from 'react';
import type { ForgeError } from './errors.js';
import type { TrackedJob } from './jobs.js';
import type { ConnectionState } from './live/job.js';
import type { Readable } from './store.js';
import type { JobTracker } from './tracker.js';

/** A tracker's verbs, and its state as of this rendering. */
export interface TrackerHook<Input = unknown, Output = unknown>
  extends Pick<JobTracker<Input, Output>, 'start' | 'attach' | 'cancel' | 'done'> {
  /** Null until the first state of the job arrives. */
  readonly job: TrackedJob<Output> | null;
  readonly connection: ConnectionState;
  readonly error: ForgeError | null;
}

/** Create a tracker that belongs to the component, and render it again at each change. */
export function useTracker<Input, Output>(
  create: () => JobTracker<Input, Output>,
): TrackerHook<Input, Output> {
  const [tracker] = useState(create) as unknown as [JobTracker<Input, Output>];
  // Effects of a component can end and run again: in StrictMode, and when it is hidden and shown.
  useEffect(() => {
    tracker.resume();
    return tracker.cleanup;
  }, [tracker]);
  const { start, attach, cancel, done } = tracker;
  const job = useValue(tracker, null);
  const connection = useValue(tracker.connection, 'idle');
  const error = useValue(tracker.error, null);
  return { job, connection, error, start, attach, cancel, done };
}

/** Return the value of a store; `initial` is what the server renders. */
function useValue<T>(store: Readable<T>, initial: T): T {
  return useSyncExternalStore(store.subscribe, store.get, () => initial);
}
