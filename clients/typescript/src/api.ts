// Generated from docs/reference/openapi.json by `npm run api`.
export interface components {
  schemas: {
    /** @description Authenticates the socket, for clients that cannot send a header. */
    AuthMessage: {
      token: string;
      /** @constant */
      type: 'auth';
    };
    /** @description A followed list may differ from before: read it again. At most once a second. */
    ChangedMessage: {
      id: string;
      /** @constant */
      type: 'changed';
    };
    ClientMessage:
      | components['schemas']['AuthMessage']
      | components['schemas']['SubscribeMessage']
      | components['schemas']['UnsubscribeMessage']
      | components['schemas']['SubscribeListMessage']
      | components['schemas']['UnsubscribeListMessage'];
    /** @description The dispatched job. */
    DispatchOut: {
      /** @description Whether an earlier dispatch had the same key. */
      deduplicated: boolean;
      /** Format: uuid */
      job_id: string;
      /** @description Null if the deduplicated job has been pruned. */
      status: components['schemas']['Status'] | null;
      /** @description Token to follow this job for an hour at most. */
      watch_token: string;
    };
    /** @description An error; with `job_id` or `id`, that job or list is not or no longer followed. */
    ErrorMessage: {
      code: string;
      id?: string;
      /** Format: uuid */
      job_id?: string;
      message: string;
      /** @constant */
      type: 'error';
    };
    /** @description The state of a followed job: immediately, and after each change. */
    JobMessage: {
      job: components['schemas']['LiveJob'];
      /** @constant */
      type: 'job';
    };
    /** @description A row of forge_jobs, and its state. */
    JobOut: {
      attempts: number;
      auth: unknown;
      cancelled_at: string | null;
      category: string | null;
      checkpoint: unknown;
      claimed_at: string | null;
      completed_at: string | null;
      correlation_id: string | null;
      crashes: number;
      /** Format: date-time */
      created_at: string;
      error_class: string | null;
      expires_at: string | null;
      failed_at: string | null;
      /** Format: uuid */
      id: string;
      idempotency_key: string | null;
      input: unknown;
      job_type: string;
      last_error: string | null;
      last_heartbeat: string | null;
      lease: number;
      lone_crashes: number;
      max_attempts: number;
      meta: unknown;
      original_scheduled_at?: string | null;
      output: unknown;
      parent_id: string | null;
      payload_version: string;
      /** @enum {integer} */
      priority: 100 | 75 | 50 | 25 | 0;
      progress_message: string | null;
      progress_percent: number | null;
      queue: string;
      retry_of: string | null;
      /** Format: date-time */
      scheduled_at: string;
      started_at: string | null;
      readonly state: components['schemas']['State'];
      status: components['schemas']['Status'];
      suspect: boolean;
      tags: string[] | null;
      tenant_id: number | null;
      timeout: string | null;
      traceparent: string | null;
      /**
       * @description Fields whose stored value cannot be decoded; they are null here.
       * @default []
       */
      undecodable: string[];
      version: number;
      worker_capability: string | null;
      worker_id: string | null;
    };
    /** @description A page of jobs, newest first. */
    JobPage: {
      items: components['schemas']['JobOut'][];
      /** @description Pass it as `cursor` to continue; null at the end. */
      next_cursor: string | null;
      /** @description Whether the search stopped at its limit of rows; `next_cursor` continues it. */
      stopped_early: boolean;
    };
    /** @description The filters of `GET /_api/jobs`, except `q` and `input.…`. */
    ListFilter: {
      category?:
        | (
            | 'ingestion'
            | 'sync'
            | 'recurrence'
            | 'orchestration'
            | 'documents'
            | 'notifications'
            | 'export'
            | 'maintenance'
          )
        | null;
      correlation_id?: string | null;
      error_class?: ('transient' | 'retryable' | 'rate_limited' | 'non_retryable') | null;
      idempotency_key?: string | null;
      parent_id?: string | null;
      priority?:
        | ('critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0)
        | null;
      queue?: string | null;
      retry_of?: string | null;
      since?: string | null;
      state?: components['schemas']['State'] | null;
      status?: components['schemas']['Status'] | null;
      tag?: string | null;
      tenant_id?: number | null;
      type?: string | null;
      until?: string | null;
      worker_id?: string | null;
    };
    /** @description A job, as followers see it. */
    LiveJob: {
      attempts: number;
      cancelled_at: string | null;
      completed_at: string | null;
      /** Format: date-time */
      created_at: string;
      failed_at: string | null;
      /** Format: uuid */
      id: string;
      job_type: string;
      last_error: string | null;
      max_attempts: number;
      /** @description What the handler returned: any JSON; null before. */
      output: unknown;
      progress_message: string | null;
      progress_percent: number | null;
      /** Format: date-time */
      scheduled_at: string;
      started_at: string | null;
      state: components['schemas']['State'];
      status: components['schemas']['Status'];
      /** @description Fields whose stored value cannot be decoded; they are null here. */
      undecodable: string[];
      /** @description Grows with each change of the job: ignore a state with a smaller version. */
      version: number;
    };
    /** @description Why an event stream has ended before the job. */
    LiveProblem: {
      code: string;
      /** Format: uuid */
      job_id: string;
      message: string;
    };
    /** @description An error: RFC 9457. */
    Problem: {
      /** @description Stable; clients can branch on it. */
      code: string;
      detail: string;
      /**
       * @description With code `invalid`: each fault.
       * @default []
       */
      errors: {
        message: string;
        /** @example $.args.format */
        path: string;
      }[];
      status: number;
      title: string;
      type: string;
    };
    /** @description The built-in job that carries out a request. */
    RequestOut: {
      /**
       * Format: uuid
       * @description Id of the built-in job; follow it like any other.
       */
      job_id: string;
      /** @example forge.cancel */
      job_type: string;
      /**
       * Format: uuid
       * @description The job that the request is about.
       */
      target_id: string;
    };
    ServerMessage:
      | components['schemas']['JobMessage']
      | components['schemas']['ChangedMessage']
      | components['schemas']['ErrorMessage'];
    /**
     * @description The coarser state that APIs return together with the status.
     * @enum {string}
     */
    State: 'queued' | 'processing' | 'completed' | 'failed_retryable' | 'failed' | 'cancelled';
    /**
     * @description The status of a job.
     * @enum {string}
     */
    Status:
      | 'pending'
      | 'claimed'
      | 'running'
      | 'completed'
      | 'retry'
      | 'failed'
      | 'dead_letter'
      | 'cancelled';
    /** @description Follows the newest jobs that match a filter, under an id that the client chooses. */
    SubscribeListMessage: {
      filter: components['schemas']['ListFilter'];
      id: string;
      /** @constant */
      type: 'subscribe';
    };
    /** @description Follows a job, with a watch token unless the socket is authenticated. */
    SubscribeMessage: {
      /** Format: uuid */
      job_id: string;
      /** @constant */
      type: 'subscribe';
      watch_token?: string | null;
    };
    /** @description Stops following a list. */
    UnsubscribeListMessage: {
      id: string;
      /** @constant */
      type: 'unsubscribe';
    };
    /** @description Stops following a job. */
    UnsubscribeMessage: {
      /** Format: uuid */
      job_id: string;
      /** @constant */
      type: 'unsubscribe';
    };
    /** @description A token to follow one job, valid for an hour at most and no longer than the caller's. */
    WatchTokenOut: {
      expires_at: number;
      watch_token: string;
    };
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type AuthMessage = components['schemas']['AuthMessage'];
export type ChangedMessage = components['schemas']['ChangedMessage'];
export type ClientMessage = components['schemas']['ClientMessage'];
export type DispatchOut = components['schemas']['DispatchOut'];
export type ErrorMessage = components['schemas']['ErrorMessage'];
export type JobMessage = components['schemas']['JobMessage'];
export type JobOut = components['schemas']['JobOut'];
export type JobPage = components['schemas']['JobPage'];
export type ListFilter = components['schemas']['ListFilter'];
export type LiveJob = components['schemas']['LiveJob'];
export type LiveProblem = components['schemas']['LiveProblem'];
export type Problem = components['schemas']['Problem'];
export type RequestOut = components['schemas']['RequestOut'];
export type ServerMessage = components['schemas']['ServerMessage'];
export type State = components['schemas']['State'];
export type Status = components['schemas']['Status'];
export type SubscribeListMessage = components['schemas']['SubscribeListMessage'];
export type SubscribeMessage = components['schemas']['SubscribeMessage'];
export type UnsubscribeListMessage = components['schemas']['UnsubscribeListMessage'];
export type UnsubscribeMessage = components['schemas']['UnsubscribeMessage'];
export type WatchTokenOut = components['schemas']['WatchTokenOut'];
