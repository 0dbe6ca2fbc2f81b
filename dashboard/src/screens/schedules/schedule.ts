/** A schedule in words, and what can be done with it. */
import type { ScheduleOut } from '../../api/schema';
import { commandLine } from '../../format/commands';
import type { Action } from '../../ui/action';

/** Return its type with its key, if it has one. */
export function nameOf({ type, key }: Pick<ScheduleOut, 'type' | 'key'>): string {
  return key ? `${type} ${key}` : type;
}

/** Return the state that a badge shows. */
export function stateOf(schedule: ScheduleOut): string {
  if (schedule.running_since) return 'running';
  if (!schedule.enabled) return 'disabled';
  return schedule.consecutive_failures ? 'failing' : 'enabled';
}

export interface ScheduleAction extends Action {
  /** Why it cannot be done with the schedule as it is. */
  readonly blocked?: string | undefined;
}

export function scheduleActions(schedule: ScheduleOut): ScheduleAction[] {
  const path = `/_api/schedules/${schedule.id}`;
  const command = (verb: string) => () => commandLine(['forge', 'schedules', verb, schedule.id]);
  const runNow: ScheduleAction = {
    route: 'POST /_api/schedules/{schedule_id}/run',
    path: `${path}/run`,
    label: 'Run now',
    command: command('run'),
    blocked: schedule.enabled ? undefined : 'It is disabled; enable it first.',
    done: () => ({ text: `${nameOf(schedule)} is due now.` }),
  };
  const enable: ScheduleAction = {
    route: 'POST /_api/schedules/{schedule_id}/enable',
    path: `${path}/enable`,
    label: 'Enable',
    command: command('enable'),
    done: () => ({ text: `${nameOf(schedule)} is enabled.` }),
  };
  const disable: ScheduleAction = {
    route: 'POST /_api/schedules/{schedule_id}/disable',
    path: `${path}/disable`,
    label: 'Disable',
    command: command('disable'),
    done: () => ({ text: `${nameOf(schedule)} is disabled. A run in progress finishes.` }),
  };
  return [runNow, schedule.enabled ? disable : enable];
}

/** Return the action that applies the definition in code again, if something was edited. */
export function resetAction(schedule: ScheduleOut): ScheduleAction | undefined {
  if (!schedule.edited.length) return undefined;
  return {
    route: 'PATCH /_api/schedules/{schedule_id}',
    path: `/_api/schedules/${schedule.id}`,
    label: 'Reset to the code…',
    body: (reason) => ({ reset: true, ...(reason ? { reason } : {}) }),
    command: (reason) =>
      commandLine(['forge', 'schedules', 'edit', schedule.id], { reset: true, reason }),
    confirm: {
      effect: `What was edited by hand (${schedule.edited.join(', ')}) follows the definition in the code again.`,
      reason: 'optional',
    },
    done: () => ({ text: `${nameOf(schedule)} follows its definition in the code.` }),
  };
}
