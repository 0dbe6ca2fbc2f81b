/** Every screen: its address, its name, the route that it needs, and its component. */
import type { Component } from 'svelte';
import AuditScreen from './audit/AuditScreen.svelte';
import DatabaseScreen from './database/DatabaseScreen.svelte';
import CauseScreen from './dead_letters/CauseScreen.svelte';
import DeadLettersScreen from './dead_letters/DeadLettersScreen.svelte';
import LetterScreen from './dead_letters/LetterScreen.svelte';
import JobScreen from './job/JobScreen.svelte';
import JobsScreen from './jobs/JobsScreen.svelte';
import OverviewScreen from './overview/OverviewScreen.svelte';
import QueueScreen from './queues/QueueScreen.svelte';
import QueuesScreen from './queues/QueuesScreen.svelte';
import ScheduleScreen from './schedules/ScheduleScreen.svelte';
import SchedulesScreen from './schedules/SchedulesScreen.svelte';
import TypeScreen from './types/TypeScreen.svelte';
import TypesScreen from './types/TypesScreen.svelte';
import WorkerScreen from './workers/WorkerScreen.svelte';
import WorkersScreen from './workers/WorkersScreen.svelte';

export interface Screen {
  /** Parameters such as `:id` are properties of the component. */
  readonly path: string;
  readonly title: string;
  /** The route without which the screen shows nothing. */
  readonly needs: string;
  // biome-ignore lint/suspicious/noExplicitAny: each screen has its own parameters
  readonly component: Component<any>;
  /** Whether the navigation lists it. */
  readonly navigation?: boolean;
  /** The second key after `g` that opens it. */
  readonly key?: string;
}

export const SCREENS: readonly Screen[] = [
  {
    path: '/overview',
    title: 'Overview',
    needs: 'GET /_api/statistics',
    component: OverviewScreen,
    navigation: true,
    key: 'o',
  },
  {
    path: '/jobs',
    title: 'Jobs',
    needs: 'GET /_api/jobs',
    component: JobsScreen,
    navigation: true,
    key: 'j',
  },
  { path: '/jobs/:id', title: 'Job', needs: 'GET /_api/jobs/{job_id}', component: JobScreen },
  {
    path: '/dead-letters',
    title: 'Dead letters',
    needs: 'GET /api/jobs/admin/dlq/groups/',
    component: DeadLettersScreen,
    navigation: true,
    key: 'd',
  },
  {
    path: '/dead-letters/causes/:fingerprint',
    title: 'Dead letters',
    needs: 'GET /api/jobs/admin/dlq/groups/',
    component: CauseScreen,
  },
  {
    path: '/dead-letters/:id',
    title: 'Dead letter',
    needs: 'GET /api/jobs/admin/dlq/{dlq_id}/',
    component: LetterScreen,
  },
  {
    path: '/schedules',
    title: 'Schedules',
    needs: 'GET /_api/schedules',
    component: SchedulesScreen,
    navigation: true,
    key: 's',
  },
  {
    path: '/schedules/:id',
    title: 'Schedule',
    needs: 'GET /_api/schedules/{schedule_id}',
    component: ScheduleScreen,
  },
  {
    path: '/types',
    title: 'Job types',
    needs: 'GET /_api/job_types',
    component: TypesScreen,
    navigation: true,
    key: 't',
  },
  { path: '/types/:name', title: 'Job type', needs: 'GET /_api/job_types', component: TypeScreen },
  {
    path: '/queues',
    title: 'Queues',
    needs: 'GET /_api/job_types',
    component: QueuesScreen,
    navigation: true,
    key: 'q',
  },
  { path: '/queues/:name', title: 'Queue', needs: 'GET /_api/job_types', component: QueueScreen },
  {
    path: '/workers',
    title: 'Workers',
    needs: 'GET /_api/workers',
    component: WorkersScreen,
    navigation: true,
    key: 'w',
  },
  {
    path: '/workers/:id',
    title: 'Worker',
    needs: 'GET /_api/workers/{worker_id}',
    component: WorkerScreen,
  },
  {
    path: '/database',
    title: 'Database',
    needs: 'GET /_api/findings',
    component: DatabaseScreen,
    navigation: true,
    key: 'b',
  },
  {
    path: '/audit',
    title: 'Audit',
    needs: 'GET /_api/audit',
    component: AuditScreen,
    navigation: true,
    key: 'a',
  },
];
