/** The live state of one job: pushed by the server, or polled by the client. */
import type { ConnectionState } from '@forge-jobs/client/live/job';
import type { LiveJob } from '../../api/schema';
import { session } from '../../api/session.svelte';

export class FollowedJob {
  latest = $state.raw<LiveJob>();
  state = $state<ConnectionState>('idle');
}

/** Follow the job for the component that calls it. */
export function follow(id: () => string): FollowedJob {
  const followed = new FollowedJob();
  $effect(() => {
    const jobId = id();
    let isEnded = false;
    const end = session.client.connection.follow(jobId, undefined, {
      onJob(job, isFinal) {
        followed.latest = job as LiveJob;
        if (isFinal && !isEnded) {
          isEnded = true;
          queueMicrotask(() => end());
        }
      },
      onState(state) {
        followed.state = state;
      },
      // The page loads the job as well, and shows its error.
      onError() {},
    });
    return () => {
      if (!isEnded) end();
    };
  });
  return followed;
}

/** Call `run` when a worker has carried a request out; return how to stop waiting. */
export function whenFinal(jobId: string, run: () => void): () => void {
  const end = session.client.connection.follow(jobId, undefined, {
    onJob(_, isFinal) {
      if (isFinal) queueMicrotask(run);
    },
    onState() {},
    onError() {},
  });
  return end;
}
