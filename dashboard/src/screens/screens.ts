/** Every screen: its address, its name, the route that it needs, and its component. */
import type { Component } from 'svelte';
import JobScreen from './job/JobScreen.svelte';
import JobsScreen from './jobs/JobsScreen.svelte';

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
    path: '/jobs',
    title: 'Jobs',
    needs: 'GET /_api/jobs',
    component: JobsScreen,
    navigation: true,
    key: 'j',
  },
  { path: '/jobs/:id', title: 'Job', needs: 'GET /_api/jobs/{job_id}', component: JobScreen },
];
