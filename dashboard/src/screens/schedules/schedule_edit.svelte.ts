/** An edit of a schedule, as a form has it: only what differs is sent. */
import { writeJson } from '../../api/json';
import type { ScheduleEditIn, ScheduleOut } from '../../api/schema';
import { commandLine } from '../../format/commands';
import { priorityName } from '../../format/statuses';
import type { Action } from '../../ui/action';
import { JsonEdit } from '../../ui/json_edit.svelte';
import { nameOf } from './schedule';

export type RuleKind = 'cron' | 'every' | 'none';
type Changes = Partial<Omit<ScheduleEditIn, 'reset' | 'reason'>>;

export class ScheduleEdit {
  readonly schedule: ScheduleOut;
  readonly payload: JsonEdit;
  kind = $state<RuleKind>('none');
  cron = $state('');
  tz = $state('');
  every = $state('');
  missed = $state<ScheduleOut['missed']>('once');
  jitter = $state('');
  timeout = $state('');
  priority = $state('');
  capability = $state('');

  constructor(schedule: ScheduleOut) {
    this.schedule = schedule;
    this.payload = new JsonEdit(schedule.payload);
    this.kind = kindOf(schedule);
    this.cron = schedule.cron ?? '';
    this.tz = schedule.tz;
    this.every = schedule.every ?? '';
    this.missed = schedule.missed;
    this.jitter = schedule.jitter ?? '';
    this.timeout = schedule.timeout ?? '';
    this.priority = priorityName(schedule.priority);
    this.capability = schedule.worker_capability ?? '';
  }

  /** What differs apart from the payload. */
  get rule(): Changes {
    const { schedule: old } = this;
    const changes: Changes = {};
    if (this.kind === 'cron') {
      if (this.cron.trim() !== (old.cron ?? '')) changes.cron = this.cron.trim();
      if (this.tz.trim() !== old.tz) changes.tz = this.tz.trim();
    } else if (this.kind === 'every') {
      if (this.every.trim() !== (old.every ?? '')) changes.every = this.every.trim();
    } else {
      if (old.cron !== null) changes.cron = null;
      if (old.every !== null) changes.every = null;
    }
    if (this.missed !== old.missed) changes.missed = this.missed;
    if (this.jitter.trim() !== (old.jitter ?? '')) changes.jitter = this.jitter.trim() || null;
    if (this.timeout.trim() !== (old.timeout ?? '')) changes.timeout = this.timeout.trim() || null;
    if (this.priority !== priorityName(old.priority)) {
      changes.priority = this.priority as NonNullable<Changes['priority']>;
    }
    if (this.capability.trim() !== (old.worker_capability ?? '')) {
      changes.worker_capability = this.capability.trim() || null;
    }
    return changes;
  }

  /** The changed payload: a patch, unless it cannot express the change. */
  get content(): Changes {
    const { payload } = this;
    if (!payload.isChanged) return {};
    return payload.nullPaths.length ? { payload: payload.value } : { patch: payload.patch };
  }

  get changes(): Changes {
    return { ...this.rule, ...this.content };
  }

  get isChanged(): boolean {
    return Object.keys(this.changes).length > 0;
  }

  get action(): Action {
    const { id } = this.schedule;
    return {
      route: 'PATCH /_api/schedules/{schedule_id}',
      path: `/_api/schedules/${id}`,
      label: 'Edit schedule…',
      body: (reason) => ({ ...this.changes, ...(reason ? { reason } : {}) }),
      command: (reason) =>
        commandLine(['forge', 'schedules', 'edit', id], { ...this.#options(), reason }),
      confirm: { effect: '', reason: 'optional', isReversible: true },
      done: () => ({ text: `${nameOf(this.schedule)} is changed.` }),
    };
  }

  #options(): Record<string, string> {
    const options: Record<string, string> = {};
    for (const [name, value] of Object.entries(this.changes)) {
      const option = name === 'worker_capability' ? 'capability' : name;
      const isJson = name === 'patch' || name === 'payload';
      options[option] = isJson ? writeJson(value) : `${value ?? 'none'}`;
    }
    return options;
  }
}

function kindOf({ cron, every }: ScheduleOut): RuleKind {
  if (cron !== null) return 'cron';
  return every === null ? 'none' : 'every';
}
