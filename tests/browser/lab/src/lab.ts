/** What a test and its page share: the test sets `lab` before the page's own code runs. */
import { configure, type JobTracker } from '$lib/forge';

interface Lab {
  readonly url: string;
  /** How many trackers the page has. */
  readonly count: number;
  trackers: Pick<JobTracker<{ format: 'csv' | 'pdf' }, { count: number }>, 'start' | 'attach' | 'cancel' | 'done'>[];
  /** Remove the trackers from the page, as a router does that shows another one. */
  leave(): void;
}

declare global {
  var lab: Lab;
  /** Answered by the test. */
  function forgeToken(): Promise<string>;
}

configure({ url: lab.url, token: () => forgeToken() });
lab.trackers = [];

export const { count } = lab;
