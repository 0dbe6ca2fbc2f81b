export type { ListFilter } from './api.js';
export { type CallOptions, ForgeClient, type ListOptions } from './client.js';
export { type Connection, configure } from './connection.js';
export { type Fault, ForgeError } from './errors.js';
export type { ClientOptions, JsonCodec } from './http.js';
export type {
  ActiveJob,
  CancelledJob,
  CompletedJob,
  FailedJob,
  Started,
  StartOptions,
  TrackedJob,
} from './jobs.js';
export type { ConnectionState } from './live/job.js';
export type { Readable } from './store.js';
export type { Token } from './token.js';
export {
  createJobTracker,
  type JobTracker,
  type StartArguments,
  type TrackerOptions,
} from './tracker.js';
