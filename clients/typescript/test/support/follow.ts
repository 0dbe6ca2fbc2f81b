// Trackers on a fake server, and the passing of time.
import { afterEach, beforeEach, vi } from 'vitest';
import { type Connection, connect } from '../../src/connection.js';
import type { ClientOptions } from '../../src/http.js';
// Loaded here: while timers are faked, a module cannot be loaded.
import '../../src/live/keeper.js';
import { createJobTracker, type JobTracker, type TrackerOptions } from '../../src/tracker.js';
import { FakeServer } from './server.js';

/** Long enough for requests and messages, and shorter than any timer of the client. */
export const SOON = 100;

export interface World {
  server: FakeServer;
  /** A connection with the token `good`, which the server accepts. */
  connection: Connection;
  client: { connection: Connection };
}

let page: EventTarget;

/** Before each test: a page, a server, fake timers, and delays of their longest. */
export function fakeWorld(): World {
  const world = {} as World;
  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(Math, 'random').mockReturnValue(0.999);
    page = new EventTarget();
    vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
    vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page));
    vi.stubGlobal('location', { href: 'http://localhost:3000/page' });
    world.server = new FakeServer();
    world.server.tokens.add('good');
    world.connection = connectTo(world.server, { token: 'good' });
    world.client = { connection: world.connection };
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  return world;
}

export function connectTo(server: FakeServer, options: ClientOptions): Connection {
  const { fetch, WebSocket } = server;
  return connect({
    url: 'http://forge.test',
    fetch: fetch as typeof globalThis.fetch,
    WebSocket,
    ...options,
  });
}

/** Send an event to the page, such as `online`. */
export function happen(type: string): void {
  page.dispatchEvent(new Event(type));
}

/** Let time pass, and everything happen that is due. */
export async function pass(milliseconds: number = SOON): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
}

/** Freeze all timers for this time, as a laptop that sleeps. */
export function sleep(milliseconds: number): void {
  vi.setSystemTime(Date.now() + milliseconds);
}

/** A tracker that follows a job, with its values in the order of their arrival. */
export function attached(
  connection: Connection,
  jobId: string,
  token?: string | (() => Promise<string>),
  options: TrackerOptions = {},
): JobTracker & { readonly states: string[]; readonly values: unknown[] } {
  const tracker = createJobTracker('export_users', { client: { connection }, ...options });
  const states: string[] = [];
  const values: unknown[] = [];
  tracker.connection.subscribe((state) => states.push(state));
  tracker.subscribe((job) => values.push(job && [job.status, job.progress_percent]));
  tracker.attach(jobId, token);
  return { ...tracker, states, values };
}
