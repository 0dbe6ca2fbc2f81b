// Generated from docs/reference/openapi.json by `npm run schema`.
export interface components {
  schemas: {
    /** @description A new pause. */
    AddedPause: {
      actor: string | null;
      /** Format: date-time */
      created_at: string;
      /** Format: uuid */
      pause_id: string;
      queue: string | null;
      reason: string;
      type: string | null;
      /** @description Null: until it is removed. */
      until: string | null;
      /** @description Set if nothing that is registered has the type or the queue. */
      warning: string | null;
    };
    /** @description A failed attempt. */
    AttemptOut: {
      attempt: number;
      claimed_at: string | null;
      /** Format: date-time */
      ended_at: string;
      error: string | null;
      error_class: string | null;
      exception: string | null;
      /** Format: uuid */
      job_id: string;
      lease: number;
      outcome: string;
      /** @description When the next attempt is due, if it is retried. */
      retry_at: string | null;
      started_at: string | null;
      tenant_id: number | null;
      trace: string | null;
      worker_id: string | null;
    };
    /** @description A request or review: actor, target and reason. */
    AuditEvent: {
      actor: string | null;
      /** Format: date-time */
      created_at: string;
      detail: unknown;
      dlq_id: number | null;
      event: string;
      id: number;
      job_id: string | null;
      notes: string | null;
      schedule_id: string | null;
      tenant_id: number | null;
    };
    /** @description A page of audit events, newest first. */
    AuditPage: {
      items: components['schemas']['AuditEvent'][];
      /** @description Pass it as `cursor` to continue; null at the end. */
      next_cursor: string | null;
      /** @description Whether the search stopped at its limit of rows; `next_cursor` continues it. */
      stopped_early: boolean;
    };
    /** @description Authenticates the socket, for clients that cannot send a header. */
    AuthMessage: {
      token: string;
      /** @constant */
      type: 'auth';
    };
    /** @description The jobs of one type, queue and capability that are due or held by a worker. */
    BacklogItemOut: {
      job_type: string;
      /** @description For how long the oldest of them has been due; null: none is. */
      oldest_seconds: number | null;
      queue: string;
      /** @description Jobs that are due and wait; `at_least` beyond 1,000 of one priority. */
      ready: components['schemas']['Count'];
      /** @description Jobs that workers run or have fetched. */
      running: number;
      worker_capability: string | null;
    };
    /**
     * @description What is done with each job that matches.
     * @enum {string}
     */
    BulkAction: 'cancel' | 'run_now' | 'delete' | 'rerun' | 'reprioritise' | 'move';
    /** @description What to do with which jobs. Exactly one of `filter`, `ids` and `all` selects them. */
    BulkActionIn: {
      action: components['schemas']['BulkAction'];
      /**
       * @description All jobs that the action applies to.
       * @default false
       */
      all: boolean;
      /**
       * @description Count the jobs, show some, and change nothing.
       * @default false
       */
      dry_run: boolean;
      filter?: components['schemas']['BulkFilter'] | null;
      ids?: string[] | null;
      /** @description For `reprioritise`; for `rerun` that of the new jobs. */
      priority?:
        | ('critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0)
        | null;
      /** @description For `move`; for `rerun` that of the new jobs. */
      queue?: string | null;
      /** @description Jobs per second; null goes as fast as ordinary jobs allow. */
      rate?: number | null;
      /** @description Stored in the audit log. */
      reason: string;
    };
    /** @description The built-in job that carries out the action. */
    BulkActionOut: {
      count: number;
      /**
       * Format: uuid
       * @description Follow it for the progress; cancel it to stop.
       */
      job_id: string;
      /**
       * @description `exact` among at most 20,000 jobs, else `at_least` or an `estimate`.
       * @enum {string}
       */
      precision: 'exact' | 'at_least' | 'estimate';
    };
    /** @description Selects dead letters to discard. */
    BulkDiscardIn: {
      /**
       * @description Required without a filter: selects all dead letters.
       * @default false
       */
      all: boolean;
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
      /**
       * @description Report what would be done and change nothing.
       * @default false
       */
      dry_run: boolean;
      error_class?: ('transient' | 'retryable' | 'rate_limited' | 'non_retryable') | null;
      fingerprint?: string | null;
      job_type?: string | null;
      /** @description Required, unless it is a dry run. */
      notes?: string | null;
      /** @description Dead letters per second; null goes as fast as ordinary jobs allow. */
      rate?: number | null;
      /** @description Must equal the token's tenant; operators may name any. */
      tenant_id?: number | null;
    };
    /** @description Conditions on jobs, as the query parameters of `GET /_api/jobs`; null means any. */
    BulkFilter: {
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
      /**
       * @description Values in the input, as shown, by path.
       * @example {
       *       "order_id": 42
       *     }
       */
      input?: {
        [key: string]: string | number | boolean | null;
      } | null;
      parent_id?: string | null;
      priority?:
        | ('critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0)
        | null;
      /** @description Text in the input, the last error or the progress message, as shown. */
      q?: string | null;
      queue?: string | null;
      retry_of?: string | null;
      /** @description Created at or after. */
      since?: string | null;
      state?: components['schemas']['State'] | null;
      status?: components['schemas']['Status'] | components['schemas']['Status'][] | null;
      tag?: string | null;
      /** @description Must equal the token's tenant; operators may name any. */
      tenant_id?: number | null;
      type?: string | null;
      /** @description Created before. */
      until?: string | null;
      worker_id?: string | null;
    };
    /** @description Selects dead letters to reprocess, with rate and stop conditions. */
    BulkIn: {
      /**
       * @description Required without a filter: selects all dead letters.
       * @default false
       */
      all: boolean;
      /**
       * @description Number to reprocess first; they must complete. 0 for none.
       * @default 1
       */
      canary: number;
      /**
       * @default 5m
       * @example 5m
       */
      canary_timeout: string;
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
      /**
       * @description Report what would be done and change nothing.
       * @default false
       */
      dry_run: boolean;
      error_class?: ('transient' | 'retryable' | 'rate_limited' | 'non_retryable') | null;
      fingerprint?: string | null;
      job_type?: string | null;
      /**
       * @description Stop after this many have failed again.
       * @default 5
       */
      max_failures: number;
      notes?: string | null;
      /**
       * @description Priority of the new jobs; null keeps the original one.
       * @default low
       */
      priority:
        | ('critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0)
        | null;
      /**
       * @description Dead letters per second.
       * @default 10
       */
      rate: number;
      /** @description Must equal the token's tenant; operators may name any. */
      tenant_id?: number | null;
    };
    /** @description The selected dead letters, and the built-in job that reviews them. */
    BulkOut: {
      dry_run: boolean;
      /** @description The twenty most frequent causes. */
      groups: components['schemas']['DeadLetterGroupOut'][];
      /** @description Id of the built-in job; null after a dry run. */
      job_id: string | null;
      /** @enum {string} */
      job_type: 'forge.reprocess' | 'forge.discard';
      letters: number;
    };
    /** @description The jobs that the action would apply to. */
    BulkPlanOut: {
      count: number;
      /** @enum {string} */
      precision: 'exact' | 'at_least' | 'estimate';
      /** @description Up to ten of them, the newest first. */
      sample: components['schemas']['JobSummary'][];
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
    /** @description A count and its precision. */
    Count: {
      count: number;
      /** @enum {string} */
      precision: 'exact' | 'at_least' | 'estimate';
    };
    /** @description Counts of jobs by status and by type. */
    CountsOut: {
      by_status: {
        [key: string]: components['schemas']['Count'];
      };
      by_type: {
        [key: string]: components['schemas']['TypeCounts'];
      };
    };
    /** @description Workers with the same capabilities and queues, and whether they consume jobs. */
    CrewOut: {
      /** @description Capabilities, or `any`; after an @ the queues, unless it serves all. */
      crew: string;
      /** @description Duration of its last canary. */
      latency_seconds: number | null;
      /**
       * @description `busy`: all slots are in use, so the canary waits.
       * @enum {string}
       */
      state: 'consumes' | 'busy' | 'silent';
      workers: number;
    };
    /** @description A job, or a run of a schedule, that a worker holds. */
    CurrentWorkOut: {
      attempt: number;
      /**
       * Format: uuid
       * @description Id of the job, or of the schedule.
       */
      id: string;
      /** @enum {string} */
      kind: 'job' | 'run';
      progress_percent: number | null;
      /** @description Null for runs of schedules. */
      queue: string | null;
      /** Format: date-time */
      since: string;
      /** @description `running`, or `claimed` while it waits in the worker for a slot. */
      status: string;
      tenant_id: number | null;
      type: string;
    };
    /** @description A dead letter with its payload and attempts. */
    DeadLetterDetail: {
      attempt_count: number;
      /** @description Each attempt: its number, outcome, error, start and end. */
      attempts: unknown;
      category: string | null;
      correlation_id: string | null;
      crashes: number;
      /** Format: date-time */
      created_at: string;
      dlq_id: number;
      /** @description The edited payload it was reprocessed with, if any. */
      edited_payload: unknown;
      error_class: string | null;
      error_message: string | null;
      exception: string | null;
      fingerprint: string;
      idempotency_key: string | null;
      /** Format: uuid */
      job_id: string;
      job_type: string;
      /** @description The job that reprocessed it. */
      new_job_id: string | null;
      notes: string | null;
      /** Format: date-time */
      original_created_at: string;
      /** Format: date-time */
      original_scheduled_at: string;
      payload: unknown;
      payload_version: string;
      /** @description Where in the code it failed: `module:function`. */
      place: string | null;
      /** @enum {integer} */
      priority: 100 | 75 | 50 | 25 | 0;
      queue: string;
      reviewed_at: string | null;
      reviewed_by: string | null;
      /** @enum {string} */
      status: 'pending_review' | 'reprocessed' | 'discarded';
      tenant_id: number | null;
      /** @description Fields whose stored value cannot be decoded; they are null here. */
      undecodable: string[];
    };
    /** @description Dead letters with the same type, category, error class, exception and place. */
    DeadLetterGroupOut: {
      category: string | null;
      error_class: string | null;
      /** @description The error message of the sample. */
      error_message: string | null;
      exception: string | null;
      fingerprint: string;
      /** Format: date-time */
      first_seen: string;
      job_type: string;
      /** Format: date-time */
      last_seen: string;
      letters: number;
      place: string | null;
      /** @description How many there are per step of the period, if `step` was given. */
      recent?: number[] | null;
      /** @description The `dlq_id` of the newest one. */
      sample: number;
    };
    /** @description Dead letters by cause, most frequent first. */
    DeadLetterGroups: {
      groups: components['schemas']['DeadLetterGroupOut'][];
      /** @description Null without `step`, and without groups. */
      recent_steps?: components['schemas']['RecentSteps'] | null;
    };
    /** @description A dead letter without its payload. */
    DeadLetterItem: {
      attempt_count: number;
      category: string | null;
      correlation_id: string | null;
      /** Format: date-time */
      created_at: string;
      dlq_id: number;
      error_class: string | null;
      error_message: string | null;
      exception: string | null;
      fingerprint: string;
      idempotency_key: string | null;
      /** Format: uuid */
      job_id: string;
      job_type: string;
      /** @description The job that reprocessed it. */
      new_job_id: string | null;
      notes: string | null;
      /** Format: date-time */
      original_created_at: string;
      /** @description Where in the code it failed: `module:function`. */
      place: string | null;
      /** @enum {integer} */
      priority: 100 | 75 | 50 | 25 | 0;
      queue: string;
      reviewed_at: string | null;
      reviewed_by: string | null;
      /** @enum {string} */
      status: 'pending_review' | 'reprocessed' | 'discarded';
      tenant_id: number | null;
    };
    /** @description A page of dead letters, newest first. */
    DeadLetterPage: {
      dlq_items: components['schemas']['DeadLetterItem'][];
      /** @description Pass it as `cursor` to continue; null at the end. */
      next_cursor: string | null;
      /** @description Number of matches on all pages. */
      total_count: number;
    };
    /** @description Discards a dead letter. */
    DiscardIn: {
      /** @description Reason, stored with the dead letter and in the audit log. */
      notes: string;
    };
    /** @description A discarded dead letter. */
    DiscardOut: {
      dlq_id: number;
      message: string;
    };
    /** @description Dispatches one job. */
    DispatchIn: {
      /**
       * @description The input; `GET /_api/job_types` has its schema.
       * @example {
       *       "format": "csv"
       *     }
       */
      args?: unknown;
      correlation_id?: string | null;
      /** @description Time until the earliest start; instead of `scheduled_at`. */
      delay?: string | null;
      /** @description The job fails if it has not started by then. */
      expires_at?: string | null;
      /** @description A second dispatch with the same key returns the first job. */
      idempotency_key?: string | null;
      /** @description Version of the input format; default: the one in the input, or `1.0`. */
      payload_version?: string | null;
      priority?:
        | ('critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0)
        | null;
      queue?: string | null;
      /** @description Earliest start. */
      scheduled_at?: string | null;
      tags?: string[] | null;
      /** @description Must equal the token's tenant; operators may name any. */
      tenant_id?: number | null;
    };
    /** @description Dispatches many jobs of one type with the same options, all or none. */
    DispatchManyIn: {
      correlation_id?: string | null;
      /** @description Time until the earliest start; instead of `scheduled_at`. */
      delay?: string | null;
      /** @description The job fails if it has not started by then. */
      expires_at?: string | null;
      /** @description One input per job. */
      inputs: unknown[];
      /** @description Version of the input format; default: the one in the input, or `1.0`. */
      payload_version?: string | null;
      priority?:
        | ('critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0)
        | null;
      queue?: string | null;
      /** @description Earliest start. */
      scheduled_at?: string | null;
      tags?: string[] | null;
      /** @description Must equal the token's tenant; operators may name any. */
      tenant_id?: number | null;
    };
    /** @description The number of dispatched jobs. */
    DispatchManyOut: {
      /** @description Number of new jobs; inputs with a known key add none. */
      count: number;
    };
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
    /**
     * @description What happened; at one moment in this order.
     * @enum {string}
     */
    EntryKind:
      | 'dispatched'
      | 'claimed'
      | 'started'
      | 'progress'
      | 'log'
      | 'failed'
      | 'crashed'
      | 'released'
      | 'snoozed'
      | 'retry'
      | 'completed'
      | 'ended'
      | 'audit';
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
    /** @description Seconds until the job starts, at the pace of the last minutes. */
    EtaBounds: {
      /** @description Latest likely start; null if unknown. */
      high: number | null;
      /** @description Earliest likely start. */
      low: number;
    };
    /** @description The position of a job, and the estimate of its start. */
    EtaOut: {
      /** @description Rounded outwards for tenants. Null if no job of its lane has started in the last ten minutes, and once the job is no longer waiting. */
      eta_seconds: components['schemas']['EtaBounds'] | null;
      /** Format: uuid */
      job_id: string;
      /** @description Position among jobs with the same type, queue, capability and priority; 1 is next. Exact for operators; rounded up to a power of ten for tenants. Null once the job is no longer waiting. */
      position: components['schemas']['Position'] | null;
      status: components['schemas']['Status'];
    };
    /** @description Something that an operator should know. */
    FindingOut: {
      /** @description What to do about it. */
      action: string | null;
      code: string;
      /** @description What the message is made of; depends on the code. */
      facts: {
        [key: string]: unknown;
      };
      message: string;
      /** @enum {string} */
      severity: 'ok' | 'info' | 'warning' | 'problem';
    };
    /** @description The status of the server. */
    Health: {
      status: string;
    };
    Items_AttemptOut_: {
      items: components['schemas']['AttemptOut'][];
    };
    Items_BacklogItemOut_: {
      items: components['schemas']['BacklogItemOut'][];
    };
    Items_FindingOut_: {
      items: components['schemas']['FindingOut'][];
    };
    Items_JobTypeOut_: {
      items: components['schemas']['JobTypeOut'][];
    };
    Items_PauseOut_: {
      items: components['schemas']['PauseOut'][];
    };
    Items_WorkerOut_: {
      items: components['schemas']['WorkerOut'][];
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
    /** @description Statistics by step; steps without jobs are included. */
    JobStatisticsOut: {
      /** Format: date-time */
      from: string;
      series: components['schemas']['StatisticsPointOut'][];
      /** @example 30m */
      step: string;
      /** Format: date-time */
      to: string;
    };
    /** @description A row of forge_jobs without `input`, `output`, `checkpoint` and `meta`, and its state. */
    JobSummary: {
      attempts: number;
      auth: unknown;
      cancelled_at: string | null;
      category: string | null;
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
      job_type: string;
      last_error: string | null;
      last_heartbeat: string | null;
      lease: number;
      lone_crashes: number;
      max_attempts: number;
      original_scheduled_at: string | null;
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
      state: components['schemas']['State'];
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
    /** @description A registered job type and its defaults. */
    JobTypeOut: {
      category: string | null;
      dead_letter: boolean;
      /** @description The docstring of its handler. */
      description: string | null;
      /** @description Source of idempotency keys: `input`, `input.…`, or `function`. */
      idempotent: string | null;
      /** @description JSON Schema of `args`; null: any. */
      input_schema: {
        [key: string]: unknown;
      } | null;
      isolation: string;
      max_attempts: number;
      name: string;
      /** @description JSON Schema of the `output` of its jobs; null: any. */
      output_schema: {
        [key: string]: unknown;
      } | null;
      /** @enum {integer} */
      priority: 100 | 75 | 50 | 25 | 0;
      queue: string;
      /** @description Required payload fields; null: one of the references of its category. */
      requires: string[] | null;
      retry: {
        [key: string]: unknown;
      } | null;
      /** @example 30m */
      timeout: string;
      worker_capability: string | null;
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
    /** @description A caller, and what the caller may do. */
    MeOut: {
      /**
       * @description The routes that the caller may call, as method and path.
       * @example [
       *       "GET /_api/jobs",
       *       "POST /_api/jobs/{job_id}/cancel"
       *     ]
       */
      allowed: string[];
      name: string;
      /** @description Whether the caller may only read: by the role `viewer`, or because the server is read-only. */
      read_only: boolean;
      roles: components['schemas']['Role'][];
      /** @description Null: an operator, who sees every tenant's rows. */
      tenant_id: number | null;
    };
    /** @description Percentiles in milliseconds, up to 10% off; null where nothing was measured. */
    Milliseconds: {
      p50: number | null;
      p95: number | null;
      p99: number | null;
    };
    /** @description The queue that the job moves to, and why. */
    MoveIn: {
      queue: string;
      reason?: string | null;
    };
    /** @description The job that has been due the longest, among those that are not paused. */
    OldestReadyOut: {
      /** Format: uuid */
      job_id: string;
      job_type: string;
      queue: string;
      /** Format: date-time */
      scheduled_at: string;
      waiting_seconds: number;
    };
    /** @description The state of the whole system. */
    OverviewOut: {
      /** Format: date-time */
      at: string;
      /** @description Dead letters that wait for review. */
      dead_letters_waiting: number;
      jobs: {
        [key: string]: components['schemas']['Count'];
      };
      /** @description Null: no job is due. */
      oldest_ready: components['schemas']['OldestReadyOut'] | null;
      pauses: components['schemas']['PauseOut'][];
      /** @description Enabled schedules whose last run failed. */
      schedules_failing: components['schemas']['Count'];
      slots: components['schemas']['SlotsOut'];
      workers: components['schemas']['WorkersByStateOut'];
    };
    /** @description What to pause, for how long, and why. */
    PauseIn: {
      /** @description Ends after this time; instead of `until`. */
      for?: string | null;
      /** @description Null: the type in every queue. */
      queue?: string | null;
      reason: string;
      /** @description A job type, or a type of schedules; null: every type of the queue. */
      type?: string | null;
      /** @description Ends at this time. Without either it lasts until it is removed. */
      until?: string | null;
    };
    /** @description A pause in effect. */
    PauseOut: {
      actor: string | null;
      /** Format: date-time */
      created_at: string;
      /** Format: uuid */
      pause_id: string;
      queue: string | null;
      reason: string;
      type: string | null;
      /** @description Null: until it is removed. */
      until: string | null;
    };
    /** @description A position in a lane, and its precision. */
    Position: {
      count: number;
      /** @enum {string} */
      precision: 'exact' | 'at_least' | 'at_most';
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
    /** @description A job without its input and output. */
    QueueJob: {
      attempt_count: number;
      cancelled_at: string | null;
      category: string | null;
      completed_at: string | null;
      correlation_id: string | null;
      /** Format: date-time */
      created_at: string;
      error_class: string | null;
      /** @description The first 500 characters. */
      error_message: string | null;
      failed_at: string | null;
      idempotency_key: string | null;
      /** Format: uuid */
      job_id: string;
      job_type: string;
      max_attempts: number;
      payload_version: string;
      /** @enum {integer} */
      priority: 100 | 75 | 50 | 25 | 0;
      queue: string;
      /** Format: date-time */
      scheduled_at: string;
      started_at: string | null;
      state: components['schemas']['State'];
      status: components['schemas']['Status'];
      tenant_id: number | null;
      worker_id: string | null;
    };
    /** @description A page of jobs, newest first. */
    QueuePage: {
      jobs: components['schemas']['QueueJob'][];
      /** @description Pass it as `cursor` to continue; null at the end. */
      next_cursor: string | null;
      /** @description Whether the search stopped at its limit of rows; `next_cursor` continues it. */
      stopped_early: boolean;
      /** @description Number of matches on all pages. */
      total_count: number;
      /**
       * @description `at_least`: among the newest 20,000 jobs.
       * @enum {string}
       */
      total_count_precision: 'exact' | 'at_least' | 'estimate';
    };
    /** @description Counts of jobs. */
    QueueStatistics: {
      by_category: {
        [key: string]: number;
      };
      by_error_class: {
        [key: string]: number;
      };
      by_status: {
        [key: string]: number;
      };
      by_type: {
        [key: string]: number;
      };
      /**
       * @description `exact` up to 20,000 jobs. Above that an `estimate` for operators; for tenants the count of the newest 20,000, which is `at_least`.
       * @enum {string}
       */
      precision: 'exact' | 'at_least' | 'estimate';
      total_count: number;
    };
    /** @description The readiness of the server, and its worker groups. */
    Readiness: {
      /** @description With `deep`, for staff and on loopback: the worker groups. */
      crews?: components['schemas']['CrewOut'][] | null;
      status: string;
    };
    /**
     * @description Why a job is not running; what stops it first counts.
     * @enum {string}
     */
    Reason:
      | 'final'
      | 'held_by_key'
      | 'owner_silent'
      | 'running'
      | 'claimed'
      | 'paused'
      | 'retry_later'
      | 'due_later'
      | 'no_worker'
      | 'no_worker_for_type'
      | 'no_worker_for_queue'
      | 'no_worker_for_capability'
      | 'workers_draining'
      | 'jobs_ahead'
      | 'no_free_slot'
      | 'next';
    /** @description The steps that `recent` of the groups counts. */
    RecentSteps: {
      /**
       * Format: date-time
       * @description When the first step began; the last one is the present.
       */
      began: string;
      /** @description Where counting a step ends: there may be more. */
      highest: number;
      /** @example 30m */
      step: string;
    };
    /** @description The new priority, and why it changes. */
    ReprioritiseIn: {
      /** @enum {unknown} */
      priority: 'critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0;
      reason?: string | null;
    };
    /** @description Reprocesses a dead letter. */
    ReprocessIn: {
      /**
       * @description Check everything and change nothing.
       * @default false
       */
      dry_run: boolean;
      notes?: string | null;
      /**
       * @description Instead of `payload`: a JSON merge patch (RFC 7396) of the stored payload.
       * @example {
       *       "connection_id": 12
       *     }
       */
      patch?: unknown;
      /** @description Replaces the original payload, which is kept; validated for the type. */
      payload?: unknown;
    };
    /** @description The new job of a reprocessed dead letter; null after a dry run. */
    ReprocessOut: {
      dlq_id: number;
      message: string;
      new_idempotency_key: string | null;
      new_job_id: string | null;
    };
    /** @description A request, with an optional reason. */
    RequestIn: {
      reason?: string | null;
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
    /** @description What differs in the new job. */
    RerunIn: {
      /** @description Instead of `scheduled_at`. */
      delay?: string | null;
      /**
       * @description Check the request, and create nothing.
       * @default false
       */
      dry_run: boolean;
      /**
       * @description A JSON merge patch (RFC 7396) of the stored input; null leaves it as it is.
       * @example {
       *       "format": "pdf"
       *     }
       */
      patch?: unknown;
      priority?:
        | ('critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0)
        | null;
      queue?: string | null;
      reason?: string | null;
      scheduled_at?: string | null;
    };
    /** @description The new job. */
    RerunOut: {
      dry_run: boolean;
      /** @description Null after a dry run. */
      job_id: string | null;
      /**
       * Format: uuid
       * @description The job that it does again.
       */
      retry_of: string;
      status: components['schemas']['Status'];
      /** @description Token to follow the new job for an hour at most; null after a dry run. */
      watch_token: string | null;
    };
    /** @description When the job runs, and why it is rescheduled. */
    RescheduleIn: {
      /** @description Time from now; instead of `scheduled_at`. */
      delay?: string | null;
      reason?: string | null;
      /** @description Or `delay`. */
      scheduled_at?: string | null;
    };
    /**
     * @description A role of a token; `manager` counts only together with `staff`.
     *
     *     `viewer` restricts: whatever other roles the token has, it only reads what they read.
     * @enum {string}
     */
    Role: 'viewer' | 'user' | 'staff' | 'manager';
    /** @description A recent run of a schedule. */
    RunOut: {
      due_at?: string | null;
      ended_at?: string | null;
      error?: string | null;
      lease: number;
      /** @description The last progress message of the handler. */
      message?: string | null;
      /**
       * @example completed
       * @example failed
       * @example skipped
       */
      outcome: string;
      started_at?: string | null;
    };
    /** @description What changes; a field that is left out stays, null removes a value that may be absent. */
    ScheduleChangesIn: {
      /** @description The cron expression; it replaces `every`. */
      cron?: string | null;
      /** @description The interval; it replaces `cron`. */
      every?: string | null;
      jitter?: string | null;
      /** @enum {string} */
      missed?: 'once' | 'skip' | 'all';
      /**
       * Format: date-time
       * @description When it runs next.
       */
      next_run_at?: string;
      /** @description A JSON merge patch (RFC 7396) of the stored payload; instead of `payload`. */
      patch?: unknown;
      /** @description A new payload. */
      payload?: unknown;
      /** @enum {unknown} */
      priority?: 'critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0;
      /**
       * @description Whether its `cron` in code applies again, instead of earlier edits.
       * @default false
       */
      reset: boolean;
      timeout?: string | null;
      /** @description The time zone of `cron`. */
      tz?: string;
      worker_capability?: string | null;
    };
    /** @description A schedule and its next runs. */
    ScheduleDetail: {
      checkpoint: unknown;
      consecutive_failures: number;
      /** @description How often the current run was interrupted. */
      crashes: number;
      /** Format: date-time */
      created_at: string;
      cron: string | null;
      /** @description What was edited by hand, such as `rule`: a `cron` in code leaves it alone. */
      edited: string[];
      enabled: boolean;
      every: string | null;
      /** Format: uuid */
      id: string;
      /**
       * @description The rule in words.
       * @example at 03:00 every day, Europe/Paris time
       */
      in_words: string;
      jitter: string | null;
      key: string;
      last_error: string | null;
      last_heartbeat: string | null;
      last_run_at: string | null;
      lease: number;
      /** @enum {string} */
      missed: 'once' | 'skip' | 'all';
      /** @description Null: no run is scheduled. */
      next_run_at: string | null;
      /** @description The next five runs, if each succeeds and does not set another time. */
      next_runs: string[];
      payload: unknown;
      /** @enum {integer} */
      priority: 100 | 75 | 50 | 25 | 0;
      /** @description The last runs, newest first. */
      recent_runs: components['schemas']['RunOut'][];
      /** @description Null: it is not running. */
      running_since: string | null;
      /** @description Whether a worker died during this run; it then runs alone. */
      suspect: boolean;
      tenant_id: number | null;
      tick_at: string | null;
      timeout: string | null;
      type: string;
      tz: string;
      /** @description Fields whose stored value cannot be decoded; they are null here. */
      undecodable: string[];
      /** Format: date-time */
      updated_at: string;
      worker_capability: string | null;
      worker_id: string | null;
    };
    /** @description An edit of a schedule, and why. */
    ScheduleEditIn: {
      /** @description The cron expression; it replaces `every`. */
      cron?: string | null;
      /** @description The interval; it replaces `cron`. */
      every?: string | null;
      jitter?: string | null;
      /** @enum {string} */
      missed?: 'once' | 'skip' | 'all';
      /**
       * Format: date-time
       * @description When it runs next.
       */
      next_run_at?: string;
      /** @description A JSON merge patch (RFC 7396) of the stored payload; instead of `payload`. */
      patch?: unknown;
      /** @description A new payload. */
      payload?: unknown;
      /** @enum {unknown} */
      priority?: 'critical' | 'high' | 'normal' | 'low' | 'background' | 100 | 75 | 50 | 25 | 0;
      reason?: string | null;
      /**
       * @description Whether its `cron` in code applies again, instead of earlier edits.
       * @default false
       */
      reset: boolean;
      timeout?: string | null;
      /** @description The time zone of `cron`. */
      tz?: string;
      worker_capability?: string | null;
    };
    /** @description A row of forge_schedules, and its rule in words. */
    ScheduleOut: {
      checkpoint: unknown;
      consecutive_failures: number;
      /** @description How often the current run was interrupted. */
      crashes: number;
      /** Format: date-time */
      created_at: string;
      cron: string | null;
      /** @description What was edited by hand, such as `rule`: a `cron` in code leaves it alone. */
      edited: string[];
      enabled: boolean;
      every: string | null;
      /** Format: uuid */
      id: string;
      /**
       * @description The rule in words.
       * @example at 03:00 every day, Europe/Paris time
       */
      in_words: string;
      jitter: string | null;
      key: string;
      last_error: string | null;
      last_heartbeat: string | null;
      last_run_at: string | null;
      lease: number;
      /** @enum {string} */
      missed: 'once' | 'skip' | 'all';
      /** @description Null: no run is scheduled. */
      next_run_at: string | null;
      payload: unknown;
      /** @enum {integer} */
      priority: 100 | 75 | 50 | 25 | 0;
      /** @description The last runs, newest first. */
      recent_runs: components['schemas']['RunOut'][];
      /** @description Null: it is not running. */
      running_since: string | null;
      /** @description Whether a worker died during this run; it then runs alone. */
      suspect: boolean;
      tenant_id: number | null;
      tick_at: string | null;
      timeout: string | null;
      type: string;
      tz: string;
      /** @description Fields whose stored value cannot be decoded; they are null here. */
      undecodable: string[];
      /** Format: date-time */
      updated_at: string;
      worker_capability: string | null;
      worker_id: string | null;
    };
    /** @description A page of schedules, newest first. */
    SchedulePage: {
      items: components['schemas']['ScheduleOut'][];
      /** @description Pass it as `cursor` to continue; null at the end. */
      next_cursor: string | null;
    };
    /** @description What an edit would change. */
    SchedulePreviewOut: {
      /** @description The columns that would differ. */
      changed: string[];
      /** @description The rule in words. */
      in_words: string;
      /** @description The next runs, if each succeeds and does not set another time; of a disabled schedule, if it were enabled. */
      next_runs: string[];
    };
    ServerMessage:
      | components['schemas']['JobMessage']
      | components['schemas']['ChangedMessage']
      | components['schemas']['ErrorMessage'];
    /** @description The slots of the live workers. */
    SlotsOut: {
      /** @description At the last heartbeats. */
      in_use: number;
      total: number;
    };
    /**
     * @description The coarser state that APIs return together with the status.
     * @enum {string}
     */
    State: 'queued' | 'processing' | 'completed' | 'failed_retryable' | 'failed' | 'cancelled';
    /** @description Totals by job type and queue, those with the most jobs first. */
    StatisticsByTypeOut: {
      /** Format: date-time */
      from: string;
      items: components['schemas']['TypeStatisticsOut'][];
      /** Format: date-time */
      to: string;
    };
    /** @description Counts by status, category, type and error class; `none` counts those without. */
    StatisticsOut: {
      by_category: {
        [key: string]: number;
      };
      by_error_class: {
        [key: string]: number;
      };
      by_status: {
        [key: string]: number;
      };
      by_type: {
        [key: string]: number;
      };
      total_count: number;
    };
    /** @description One step of the series. */
    StatisticsPointOut: {
      /**
       * Format: date-time
       * @description The beginning of the step.
       */
      at: string;
      completed: number;
      /** @description Attempts whose worker or process died, or lost the database. */
      crashed: number;
      /** @description Jobs that ended as failed or dead_letter. */
      failed: number;
      /** @description Attempts that failed and are tried again. */
      retried: number;
      /** @description From the start of an attempt to its end. */
      run_ms: components['schemas']['Milliseconds'];
      /** @description From scheduled_at to the start of an attempt. */
      wait_ms: components['schemas']['Milliseconds'];
    };
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
    /** @description A page of summaries, newest first. */
    SummaryPage: {
      items: components['schemas']['JobSummary'][];
      /** @description Pass it as `cursor` to continue; null at the end. */
      next_cursor: string | null;
      /** @description Whether the search stopped at its limit of rows; `next_cursor` continues it. */
      stopped_early: boolean;
    };
    /** @description One thing that happened to a job. */
    TimelineEntryOut: {
      /** Format: date-time */
      at: string;
      attempt: number | null;
      /** @description By kind; the reference lists the names. */
      detail: {
        [key: string]: unknown;
      };
      kind: components['schemas']['EntryKind'];
      /** @description The claim that it belongs to. */
      lease: number | null;
      /** @description In one line, for people. */
      message: string;
      worker_id: string | null;
    };
    /** @description What happened to a job, oldest first. */
    TimelineOut: {
      items: components['schemas']['TimelineEntryOut'][];
      /** Format: uuid */
      job_id: string;
      /** @description Whether earlier attempts, lines or audit events are left out. */
      truncated: boolean;
    };
    /** @description Counts of one type. */
    TypeCounts: {
      all: components['schemas']['Count'];
      /** @description Pending, claimed, running or waiting for a retry. */
      live: components['schemas']['Count'];
    };
    /** @description The totals of one job type and queue. */
    TypeStatisticsOut: {
      cancelled: number;
      completed: number;
      crashed: number;
      failed: number;
      /** @description Of these. Null if none ended. */
      failed_percent: number | null;
      /** @description Null for a tenant, and where the totals of all types are added up. */
      job_type: string | null;
      /** @description Jobs that completed or failed, per minute. */
      per_minute: number;
      /** @description Null for a tenant, and where the totals of all queues are added up. */
      queue: string | null;
      /** @description Attempts that a stopping worker gave back. */
      released: number;
      /** @description Dead letters that became new jobs. */
      reprocessed: number;
      retried: number;
      run_ms: components['schemas']['Milliseconds'];
      snoozed: number;
      wait_ms: components['schemas']['Milliseconds'];
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
    /** @description Why a job is not running. */
    WhyOut: {
      /** @description What the reason is based on; the reference lists the facts of each reason. Positions and estimates are coarse for tenants, and other workers are shown to staff only. */
      facts: {
        [key: string]: unknown;
      };
      /** Format: uuid */
      job_id: string;
      /** @description One sentence for people. */
      message: string;
      reason: components['schemas']['Reason'];
      status: components['schemas']['Status'];
    };
    /** @description A worker that is alive or was recently. */
    WorkerOut: {
      capabilities: string[];
      /** @description What it runs, the longest running first: at most 10 in a list, 200 of a single worker. Of the caller's tenant only. */
      current: components['schemas']['CurrentWorkOut'][];
      /** @description For operators. */
      drain_reason: string | null;
      /** @description Since when it claims nothing, until it is resumed; null: it claims. */
      drained_at: string | null;
      /** @description For operators. */
      drained_by: string | null;
      /** @description Whether it shuts down. */
      draining: boolean;
      hostname: string;
      /** Format: uuid */
      id: string;
      /** Format: uuid */
      incarnation: string;
      is_alive: boolean;
      job_types: string[];
      /** Format: date-time */
      last_heartbeat: string;
      max_concurrent: number;
      pid: number;
      /** @description Null: every queue. */
      queues: string[] | null;
      /** @description Slots in use at the last heartbeat. */
      running: number;
      schedule_types: string[];
      /** @description Seconds since its last heartbeat. */
      silent_for: number;
      /** Format: date-time */
      started_at: string;
      /** @enum {string} */
      state: 'alive' | 'drained' | 'draining' | 'dead';
      version: string;
    };
    /** @description How many workers are in each state. */
    WorkersByStateOut: {
      alive: number;
      /** @description Without a heartbeat; forgotten after a while. */
      dead: number;
      drained: number;
      draining: number;
    };
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type AddedPause = components['schemas']['AddedPause'];
export type AttemptOut = components['schemas']['AttemptOut'];
export type AuditEvent = components['schemas']['AuditEvent'];
export type AuditPage = components['schemas']['AuditPage'];
export type AuthMessage = components['schemas']['AuthMessage'];
export type BacklogItemOut = components['schemas']['BacklogItemOut'];
export type BulkAction = components['schemas']['BulkAction'];
export type BulkActionIn = components['schemas']['BulkActionIn'];
export type BulkActionOut = components['schemas']['BulkActionOut'];
export type BulkDiscardIn = components['schemas']['BulkDiscardIn'];
export type BulkFilter = components['schemas']['BulkFilter'];
export type BulkIn = components['schemas']['BulkIn'];
export type BulkOut = components['schemas']['BulkOut'];
export type BulkPlanOut = components['schemas']['BulkPlanOut'];
export type ChangedMessage = components['schemas']['ChangedMessage'];
export type ClientMessage = components['schemas']['ClientMessage'];
export type Count = components['schemas']['Count'];
export type CountsOut = components['schemas']['CountsOut'];
export type CrewOut = components['schemas']['CrewOut'];
export type CurrentWorkOut = components['schemas']['CurrentWorkOut'];
export type DeadLetterDetail = components['schemas']['DeadLetterDetail'];
export type DeadLetterGroupOut = components['schemas']['DeadLetterGroupOut'];
export type DeadLetterGroups = components['schemas']['DeadLetterGroups'];
export type DeadLetterItem = components['schemas']['DeadLetterItem'];
export type DeadLetterPage = components['schemas']['DeadLetterPage'];
export type DiscardIn = components['schemas']['DiscardIn'];
export type DiscardOut = components['schemas']['DiscardOut'];
export type DispatchIn = components['schemas']['DispatchIn'];
export type DispatchManyIn = components['schemas']['DispatchManyIn'];
export type DispatchManyOut = components['schemas']['DispatchManyOut'];
export type DispatchOut = components['schemas']['DispatchOut'];
export type EntryKind = components['schemas']['EntryKind'];
export type ErrorMessage = components['schemas']['ErrorMessage'];
export type EtaBounds = components['schemas']['EtaBounds'];
export type EtaOut = components['schemas']['EtaOut'];
export type FindingOut = components['schemas']['FindingOut'];
export type Health = components['schemas']['Health'];
export type ItemsAttemptOut = components['schemas']['Items_AttemptOut_'];
export type ItemsBacklogItemOut = components['schemas']['Items_BacklogItemOut_'];
export type ItemsFindingOut = components['schemas']['Items_FindingOut_'];
export type ItemsJobTypeOut = components['schemas']['Items_JobTypeOut_'];
export type ItemsPauseOut = components['schemas']['Items_PauseOut_'];
export type ItemsWorkerOut = components['schemas']['Items_WorkerOut_'];
export type JobMessage = components['schemas']['JobMessage'];
export type JobOut = components['schemas']['JobOut'];
export type JobPage = components['schemas']['JobPage'];
export type JobStatisticsOut = components['schemas']['JobStatisticsOut'];
export type JobSummary = components['schemas']['JobSummary'];
export type JobTypeOut = components['schemas']['JobTypeOut'];
export type ListFilter = components['schemas']['ListFilter'];
export type LiveJob = components['schemas']['LiveJob'];
export type LiveProblem = components['schemas']['LiveProblem'];
export type MeOut = components['schemas']['MeOut'];
export type Milliseconds = components['schemas']['Milliseconds'];
export type MoveIn = components['schemas']['MoveIn'];
export type OldestReadyOut = components['schemas']['OldestReadyOut'];
export type OverviewOut = components['schemas']['OverviewOut'];
export type PauseIn = components['schemas']['PauseIn'];
export type PauseOut = components['schemas']['PauseOut'];
export type Position = components['schemas']['Position'];
export type Problem = components['schemas']['Problem'];
export type QueueJob = components['schemas']['QueueJob'];
export type QueuePage = components['schemas']['QueuePage'];
export type QueueStatistics = components['schemas']['QueueStatistics'];
export type Readiness = components['schemas']['Readiness'];
export type Reason = components['schemas']['Reason'];
export type RecentSteps = components['schemas']['RecentSteps'];
export type ReprioritiseIn = components['schemas']['ReprioritiseIn'];
export type ReprocessIn = components['schemas']['ReprocessIn'];
export type ReprocessOut = components['schemas']['ReprocessOut'];
export type RequestIn = components['schemas']['RequestIn'];
export type RequestOut = components['schemas']['RequestOut'];
export type RerunIn = components['schemas']['RerunIn'];
export type RerunOut = components['schemas']['RerunOut'];
export type RescheduleIn = components['schemas']['RescheduleIn'];
export type Role = components['schemas']['Role'];
export type RunOut = components['schemas']['RunOut'];
export type ScheduleChangesIn = components['schemas']['ScheduleChangesIn'];
export type ScheduleDetail = components['schemas']['ScheduleDetail'];
export type ScheduleEditIn = components['schemas']['ScheduleEditIn'];
export type ScheduleOut = components['schemas']['ScheduleOut'];
export type SchedulePage = components['schemas']['SchedulePage'];
export type SchedulePreviewOut = components['schemas']['SchedulePreviewOut'];
export type ServerMessage = components['schemas']['ServerMessage'];
export type SlotsOut = components['schemas']['SlotsOut'];
export type State = components['schemas']['State'];
export type StatisticsByTypeOut = components['schemas']['StatisticsByTypeOut'];
export type StatisticsOut = components['schemas']['StatisticsOut'];
export type StatisticsPointOut = components['schemas']['StatisticsPointOut'];
export type Status = components['schemas']['Status'];
export type SubscribeListMessage = components['schemas']['SubscribeListMessage'];
export type SubscribeMessage = components['schemas']['SubscribeMessage'];
export type SummaryPage = components['schemas']['SummaryPage'];
export type TimelineEntryOut = components['schemas']['TimelineEntryOut'];
export type TimelineOut = components['schemas']['TimelineOut'];
export type TypeCounts = components['schemas']['TypeCounts'];
export type TypeStatisticsOut = components['schemas']['TypeStatisticsOut'];
export type UnsubscribeListMessage = components['schemas']['UnsubscribeListMessage'];
export type UnsubscribeMessage = components['schemas']['UnsubscribeMessage'];
export type WatchTokenOut = components['schemas']['WatchTokenOut'];
export type WhyOut = components['schemas']['WhyOut'];
export type WorkerOut = components['schemas']['WorkerOut'];
export type WorkersByStateOut = components['schemas']['WorkersByStateOut'];
