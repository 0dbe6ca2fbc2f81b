import { derived, get } from 'svelte/store';
import { expect, test, vi } from 'vitest';
import { writable } from '../src/store.js';
import { createJobTracker } from '../src/tracker.js';
import { fakeWorld, pass } from './support/follow.js';

const world = fakeWorld();

test('a subscriber is called with the value now and after each change', () => {
  const store = writable(1);
  const run = vi.fn();

  const unsubscribe = store.subscribe(run);
  store.set(2);
  store.set(2);
  unsubscribe();
  store.set(3);

  expect(run.mock.calls).toEqual([[1], [2]]);
});

test('a function that subscribes twice is two subscribers', () => {
  const store = writable(1);
  const run = vi.fn();
  const unsubscribe = store.subscribe(run);
  store.subscribe(run);

  unsubscribe();
  run.mockClear();
  store.set(2);

  expect(run.mock.calls).toEqual([[2]]);
});

test('a subscriber may unsubscribe, subscribe and set', () => {
  const store = writable(1);
  const late = vi.fn();
  const unsubscribe = store.subscribe((value) => {
    if (value !== 2) return;
    unsubscribe();
    store.subscribe(late);
    store.set(3);
  });
  const other = vi.fn();
  store.subscribe(other);

  store.set(2);

  expect(late).toHaveBeenLastCalledWith(3);
  expect(other).toHaveBeenLastCalledWith(3);
});

test('Svelte reads trackers, and derives stores from them', async () => {
  world.server.addJob('a', { progress_percent: 40 });
  const tracker = createJobTracker('export_users', { client: world.client });
  const label = derived([tracker, tracker.connection], ([job, connection]) =>
    job ? `${job.progress_percent}% ${connection}` : 'nothing',
  );
  const labels: string[] = [];
  label.subscribe((text) => labels.push(text));

  tracker.attach('a');
  await pass();
  world.server.change('a', { progress_percent: 60 });
  await pass();

  expect(get(tracker)?.progress_percent).toBe(60);
  expect(labels.at(0)).toBe('nothing');
  expect(labels.at(-1)).toBe('60% live');
});
